---@brief
---
--- warplens: what a CUDA, HIP or OpenCL kernel costs, while it is typed.
---
--- Enable it with `vim.lsp.enable('warplens')`; change it with `vim.lsp.config('warplens', { … })`.
--- `settings.warplens` and `init_options` have the shape of `warplens.toml`. See |warplens|.

-- Commands that a code lens or a code action may name. They are run here and not sent on as they
-- stay, because what they request (a GPU, a launch) or answer (a table, a page) needs the editor.
local lens_commands = {
  'warplens.selectGpu',
  'warplens.setLaunch',
  'warplens.nextLaunch',
  'warplens.pin',
  'warplens.breakdown',
  'warplens.compareGpus',
  'warplens.report',
  'warplens.program',
  'warplens.estimate',
  'warplens.whatWouldHelp',
}

local commands = {}
for _, name in ipairs(lens_commands) do
  commands[name] = function(command, context)
    require('warplens.commands').run_lens(command, context)
  end
end

-- What Neovim 0.11 does not announce itself; a later one that has its own handler keeps it.
local handlers = {}
local workspace = {}
if not vim.lsp.handlers['workspace/codeLens/refresh'] then
  workspace.codeLens = { refreshSupport = true }
  handlers['workspace/codeLens/refresh'] = function(_, _, context)
    require('warplens').refresh_lenses(context.client_id)
    return vim.NIL
  end
end
if not vim.lsp.handlers['workspace/diagnostic/refresh'] then
  workspace.diagnostics = { refreshSupport = true }
  handlers['workspace/diagnostic/refresh'] = function(_, _, context)
    require('warplens').pull_diagnostics(context.client_id)
    return vim.NIL
  end
end

-- The server refreshes lenses after every change that is not an edit: other figures follow then too.
handlers['workspace/inlayHint/refresh'] = function(failure, result, context)
  require('warplens').figures_changed(context.client_id)
  return vim.lsp.handlers['workspace/inlayHint/refresh'](failure, result, context)
end

-- What is wrong in warplens.toml comes along with the diagnostics of a kernel's file.
local defaults = vim.lsp.protocol.make_client_capabilities()
local textDocument = {}
if not vim.tbl_get(defaults, 'textDocument', 'diagnostic', 'relatedDocumentSupport') then
  textDocument.diagnostic = { relatedDocumentSupport = true }
  handlers['textDocument/diagnostic'] = function(failure, result, context)
    vim.lsp.diagnostic.on_diagnostic(failure, result, context)
    local reports = result and result.relatedDocuments
    for uri, report in pairs(type(reports) == 'table' and reports or {}) do
      local related = vim.tbl_extend('force', context, { params = { textDocument = { uri = uri } } })
      vim.lsp.diagnostic.on_diagnostic(nil, report, related)
    end
  end
end

local root_markers = { 'warplens.toml', 'compile_commands.json', '.git' }

local headers = { h = true, hh = true, hpp = true, hxx = true, inc = true, inl = true, ipp = true, tcc = true }

-- C and C++ files matter where they hold kernels, in their code or in strings; headers also beside open
-- kernels, whose figures follow what is typed in them. Others are left alone.
local function root_dir(bufnr, on_dir)
  local filetype = vim.bo[bufnr].filetype
  if filetype == 'c' or filetype == 'cpp' then
    local text = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n')
    local kernels = text:find('__global__', 1, true) or text:find('__kernel', 1, true) or text:find('kernel%s+void')
    local header = headers[vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':e')]
    if not kernels and not (header and #vim.lsp.get_clients({ name = 'warplens' }) > 0) then
      return
    end
  end
  on_dir(vim.fs.root(bufnr, root_markers))
end

---@type vim.lsp.Config
return {
  cmd = { 'warplens', 'lsp' },
  filetypes = { 'cuda', 'opencl', 'hip', 'c', 'cpp' },
  root_dir = root_dir,
  root_markers = root_markers,
  commands = commands,
  handlers = handlers,
  on_init = function()
    require('warplens').ended = nil
  end,
  on_exit = function(code, signal)
    -- It exits with 1 when the editor closes without `shutdown`: that end is intended too.
    local badly = signal ~= 0 and signal ~= 15 and ('stopped by signal %d'):format(signal)
      or code > 1 and ('stopped with status %d'):format(code)
    require('warplens').ended = badly and (badly .. ', see :checkhealth warplens') or nil
    vim.schedule(function()
      pcall(vim.cmd.redrawstatus, { bang = true })
    end)
  end,
  capabilities = {
    workspace = workspace,
    textDocument = textDocument,
    experimental = { commands = { commands = lens_commands } },
  },
}
