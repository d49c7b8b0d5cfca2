---@brief
---
--- warplens: what a CUDA, HIP or OpenCL kernel costs, while it is typed.
---
--- Enable it with `vim.lsp.enable('warplens')`; change it with `vim.lsp.config('warplens', { … })`.
--- `settings.warplens` and `init_options` have the shape of `warplens.toml`. See |warplens|.

-- Commands that a code lens or a code action may name. They are run here and not sent on as they
-- stand, because what they ask for (a GPU, a launch) or answer (a table, a page) needs the editor.
local lens_commands = {
  'warplens.selectGpu',
  'warplens.setLaunch',
  'warplens.breakdown',
  'warplens.compareGpus',
  'warplens.report',
  'warplens.estimate',
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

---@type vim.lsp.Config
return {
  cmd = { 'warplens', 'lsp' },
  filetypes = { 'cuda', 'opencl', 'hip' },
  root_markers = { 'warplens.toml', 'compile_commands.json', '.git' },
  commands = commands,
  handlers = handlers,
  capabilities = {
    workspace = workspace,
    textDocument = textDocument,
    experimental = { commands = { commands = lens_commands } },
  },
}
