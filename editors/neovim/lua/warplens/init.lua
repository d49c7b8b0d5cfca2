--- The client's side of the warplens language server: what a user's configuration may call.
local M = {}

local group = vim.api.nvim_create_augroup('warplens.show', {})

---@param bufnr? integer
local function resolve(bufnr)
  return (bufnr == nil or bufnr == 0) and vim.api.nvim_get_current_buf() or bufnr
end

--- Tells the user something, under this plugin's name.
---@param message string
---@param level? integer one of vim.log.levels; an error by default
function M.notify(message, level)
  vim.notify('warplens: ' .. message, level or vim.log.levels.ERROR, { title = 'warplens' })
end

--- The client that serves a buffer.
---@param bufnr? integer the current buffer by default
---@return vim.lsp.Client?
function M.client(bufnr)
  return vim.lsp.get_clients({ name = 'warplens', bufnr = resolve(bufnr) })[1]
end

--- The warplens program: the one that the running client was started from, else the configured one.
---@param bufnr? integer
---@return string
function M.program(bufnr)
  local client = M.client(bufnr)
  local config = client and client.config or vim.lsp.config.warplens
  local cmd = config and config.cmd
  return type(cmd) == 'table' and cmd[1] or 'warplens'
end

--- Runs one of the server's commands.
---@param bufnr integer a buffer that the server is attached to
---@param command string as in `warplens.estimate`
---@param argument table its one argument
---@param on_result fun(result: any, client: vim.lsp.Client) not called when the command fails
function M.execute(bufnr, command, argument, on_result)
  local client = M.client(bufnr)
  if not client then
    return M.notify('the server is not attached to this buffer (see :checkhealth warplens)')
  end
  local offered = vim.tbl_get(client.server_capabilities, 'executeCommandProvider', 'commands')
  if not vim.list_contains(offered or {}, command) then
    return M.notify(('this server does not offer %s'):format(command))
  end
  -- Not client:exec_cmd(): it would find the command of the same name that lenses use and come back.
  client:request('workspace/executeCommand', {
    command = command,
    arguments = { next(argument) and argument or vim.empty_dict() },
  }, function(failure, result)
    if failure then
      M.notify(failure.message)
    else
      on_result(result, client)
    end
  end, bufnr)
end

--- Whether hints and lenses are shown in a buffer.
---@param bufnr? integer
function M.shown(bufnr)
  return vim.lsp.inlay_hint.is_enabled({ bufnr = resolve(bufnr) })
end

--- The buffers whose lenses are asked for, by client; `again` where they changed since.
local asked = {} ---@type table<integer, table<integer, 'once'|'again'>>

--- Asks for the lenses of a buffer (Neovim 0.11). Its own vim.lsp.codelens.refresh() does nothing while an answer is
--- awaited: what is typed then would leave the lenses of the text before it.
---@param bufnr integer
local function refresh(bufnr)
  local client = M.client(bufnr)
  if not client then
    return
  end
  local buffers = vim.tbl_get(asked, client.id) or {}
  asked[client.id] = buffers
  if buffers[bufnr] then
    buffers[bufnr] = 'again'
    return
  end
  buffers[bufnr] = 'once'
  local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
  local sent = client:request('textDocument/codeLens', params, function(failure, result, context)
    local changed = buffers[bufnr] == 'again'
    buffers[bufnr] = nil
    if not vim.api.nvim_buf_is_loaded(bufnr) then
      return
    end
    vim.lsp.codelens.on_codelens(failure, result, context)
    if changed then
      refresh(bufnr)
    end
  end, bufnr)
  if not sent then
    buffers[bufnr] = nil
  end
end

--- Shows or hides inlay hints and code lenses in a buffer, and keeps the lenses fresh.
---@param bufnr? integer
---@param on? boolean true by default
function M.show(bufnr, on)
  bufnr = resolve(bufnr)
  on = on ~= false
  vim.lsp.inlay_hint.enable(on, { bufnr = bufnr })

  -- From 0.12 on Neovim keeps lenses up to date by itself.
  if vim.lsp.codelens.enable then
    return vim.lsp.codelens.enable(on, { bufnr = bufnr })
  end
  vim.api.nvim_clear_autocmds({ group = group, buffer = bufnr })
  if not on then
    local client = M.client(bufnr)
    return client and vim.lsp.codelens.clear(client.id, bufnr)
  end
  vim.api.nvim_create_autocmd({ 'BufEnter', 'TextChanged', 'InsertLeave', 'CursorHoldI' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      refresh(bufnr)
    end,
  })
  refresh(bufnr)
end

--- Asks again for the lenses of the buffers of a client that show them (Neovim 0.11).
---@param client_id integer
function M.refresh_lenses(client_id)
  for bufnr in pairs(M.buffers(client_id)) do
    if #vim.api.nvim_get_autocmds({ group = group, buffer = bufnr }) > 0 then
      refresh(bufnr)
    end
  end
end

--- Asks again for the diagnostics of a client's buffers (Neovim 0.11).
---@param client_id integer
function M.pull_diagnostics(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  if not client or not client:supports_method('textDocument/diagnostic') then
    return
  end
  for bufnr in pairs(M.buffers(client_id)) do
    local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
    client:request('textDocument/diagnostic', params, nil, bufnr)
  end
end

--- Tells a client's server that a file has changed on disk, unless Neovim watches files by itself.
---@param client vim.lsp.Client
---@param path string
function M.file_changed(client, path)
  if vim.tbl_get(client.capabilities, 'workspace', 'didChangeWatchedFiles', 'dynamicRegistration') then
    return
  end
  client:notify('workspace/didChangeWatchedFiles', {
    changes = { { uri = vim.uri_from_fname(path), type = vim.lsp.protocol.FileChangeType.Changed } },
  })
end

--- The loaded buffers that a client is attached to, as a set.
---@param client_id integer
---@return table<integer, true>
function M.buffers(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  local buffers = {}
  for bufnr in pairs(client and client.attached_buffers or {}) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      buffers[bufnr] = true
    end
  end
  return buffers
end

--- Who chose the GPU of a buffer, as the server says it: `default` where nothing names one.
---@param bufnr integer
---@return string?
function M.gpu_source(bufnr)
  return vim.b[bufnr].warplens_gpu_source
end

--- Asks who chose the GPU of a buffer. Says nothing where that is not known: a file without kernels, an older server.
---@param bufnr integer
---@param on_target? fun(target: { gpu: string, source: string })
local function ask_target(bufnr, on_target)
  local client = M.client(bufnr)
  local offered = client and vim.tbl_get(client.server_capabilities, 'executeCommandProvider', 'commands')
  if not client or not vim.list_contains(offered or {}, 'warplens.target') then
    return
  end
  client:request('workspace/executeCommand', {
    command = 'warplens.target',
    arguments = { { uri = vim.uri_from_bufnr(bufnr) } },
  }, function(_, target)
    if type(target) == 'table' and vim.api.nvim_buf_is_valid(bufnr) then
      vim.b[bufnr].warplens_gpu_source = target.source
      if on_target then
        on_target(target)
      end
    end
  end, bufnr)
end

--- Says once that the GPU is the default where nothing names one; with vim.g.warplens_detect_gpu, proposes the machine's.
---@param bufnr integer
local function propose_gpu(bufnr)
  local said = vim.fs.joinpath(vim.fn.stdpath('state'), 'warplens', 'gpu-proposed')
  ask_target(bufnr, function(target)
    if target.source ~= 'default' or vim.uv.fs_stat(said) then
      return
    end
    vim.fn.mkdir(vim.fs.dirname(said), 'p')
    pcall(vim.fn.writefile, { target.gpu }, said)
    if vim.g.warplens_detect_gpu then
      return require('warplens.commands').detect_gpu(bufnr)
    end
    local text = 'costs are predicted for %s, the default; :Warplens gpu chooses another, :Warplens gpu detect asks this machine'
    M.notify(text:format(target.gpu), vim.log.levels.INFO)
  end)
end

--- Called when the server attaches to a buffer: gives it :Warplens, and what vim.g.warplens_show asks.
---@param bufnr integer
function M.attach(bufnr)
  vim.api.nvim_buf_create_user_command(bufnr, 'Warplens', function(call)
    require('warplens.commands').run(call.fargs, bufnr)
  end, {
    nargs = '*',
    desc = 'What this kernel costs: gpu, launch, panel, kernels, fixes, report, explain, compare, hints …',
    complete = function(lead, line)
      return require('warplens.commands').complete(lead, line, bufnr)
    end,
  })
  if vim.g.warplens_show then
    M.show(bufnr)
  end
  require('warplens.kept').restore(bufnr)
  propose_gpu(bufnr)
end

--- The figures of a client's buffers have changed for another reason than an edit: a GPU, a setting, a header.
---@param client_id integer
function M.figures_changed(client_id)
  for bufnr in pairs(M.buffers(client_id)) do
    require('warplens.figures').stale(bufnr)
    require('warplens.lines').stale(bufnr)
    ask_target(bufnr)
  end
end

--- How the last server ended, where it did not end well and none has been started since.
M.ended = nil ---@type string?

--- For 'statusline': the target, the kernel at the cursor with its predicted time, and how many findings the buffer
--- has. Empty in a buffer that has nothing to do with kernels. It never waits: what is not known yet is left out.
---@param bufnr? integer
---@return string
function M.statusline(bufnr)
  bufnr = resolve(bufnr)
  local client = M.client(bufnr)
  if not client then
    local ours = vim.list_contains({ 'cuda', 'opencl', 'hip' }, vim.bo[bufnr].filetype)
    return ours and M.ended and ('warplens: ' .. M.ended) or ''
  end
  return require('warplens.status').text(bufnr, client)
end

--- Called when the server leaves a buffer.
---@param bufnr integer
function M.detach(bufnr)
  vim.api.nvim_clear_autocmds({ group = group, buffer = bufnr })
  require('warplens.heat').show(bufnr, false)
  require('warplens.lines').show(bufnr, false)
  require('warplens.figures').forget(bufnr)
  pcall(vim.api.nvim_buf_del_user_command, bufnr, 'Warplens')
end

return M
