--- :checkhealth warplens
local M = {}

local health = vim.health

--- The first line that the program prints for --version, or nil and why there is none.
---@param program string
local function version_of(program)
  local started, process = pcall(vim.system, { program, '--version' }, { text = true })
  if not started then
    return nil, 'it cannot be run'
  end
  local result = process:wait(5000)
  if result.code ~= 0 then
    return nil, ('it ended with status %d'):format(result.code)
  end
  return vim.trim(result.stdout):match('^[^\n]*')
end

---@return string? version
local function check_program()
  health.start('warplens: program')
  local config = vim.lsp.config.warplens
  if not config then
    health.error('lsp/warplens.lua is not on the runtimepath', {
      'Install the plugin with your plugin manager, or add its folder to the runtimepath',
    })
    return
  end
  if type(config.cmd) ~= 'table' then
    health.info('`cmd` is a function: the program is not checked')
    return
  end
  local program = config.cmd[1]
  local path = vim.fn.exepath(program)
  if path == '' then
    health.error(('`%s` was not found'):format(program), {
      'Put warplens on the PATH (`cargo xtask install` in its repository)',
      "Or name it: vim.lsp.config('warplens', { cmd = { '/path/to/warplens', 'lsp' } })",
    })
    return
  end
  local version, why = version_of(path)
  if not version then
    health.error(('%s: no answer to --version: %s'):format(path, why))
    return
  end
  health.ok(('%s: %s'):format(path, version))

  local listed = vim.system({ path, 'gpus', '--format', 'json' }, { text = true }):wait(5000)
  local decoded, answer = pcall(vim.json.decode, listed.stdout or '')
  if listed.code == 0 and decoded and type(answer.gpus) == 'table' and #answer.gpus > 0 then
    health.ok(('%d GPUs have a profile'):format(#answer.gpus))
  else
    health.error('the program does not list its GPU profiles', { 'Run `warplens gpus`' })
  end
  return version
end

--- Checks that all clients of a buffer count columns alike.
---@param client vim.lsp.Client
---@param bufnr integer
local function check_encoding(client, bufnr)
  local clash = false
  for _, other in ipairs(vim.lsp.get_clients({ bufnr = bufnr })) do
    if other.id ~= client.id and other.offset_encoding ~= client.offset_encoding then
      clash = true
      health.warn(
        ('buffer %d: %s counts columns in %s, warplens in %s'):format(
          bufnr,
          other.name,
          other.offset_encoding,
          client.offset_encoding
        ),
        {
          'Neovim warns when the clients of a buffer differ. warplens takes the first encoding that '
            .. 'Neovim offers, so let both offer the same:',
          ("vim.lsp.config('%s', { capabilities = { general = { positionEncodings = { '%s' } } } })"):format(
            other.name,
            client.offset_encoding
          ),
        }
      )
    end
  end
  return clash
end

--- The GPU that the server predicts for in a buffer.
---@param client vim.lsp.Client
---@param bufnr integer
local function target(client, bufnr)
  local answer = client:request_sync('workspace/executeCommand', {
    command = 'warplens.estimate',
    arguments = { { uri = vim.uri_from_bufnr(bufnr) } },
  }, 3000, bufnr)
  local results = vim.tbl_get(answer or {}, 'result', 'results')
  return results and results[1] and results[1].gpu
end

---@param client vim.lsp.Client
local function check_settings(client)
  local root = client.root_dir
  local file = root and vim.fs.joinpath(root, 'warplens.toml')
  if file and vim.uv.fs_stat(file) then
    local problems = vim.tbl_filter(function(found)
      return found.source == 'warplens'
    end, vim.fn.bufexists(file) == 1 and vim.diagnostic.get(vim.fn.bufnr(file)) or {})
    if #problems > 0 then
      health.warn(('%s: %s'):format(file, problems[1].message))
    else
      health.ok(file)
    end
  else
    health.info('no warplens.toml at the root: the target and the launches come from the editor, the source and defaults')
  end
  if root and vim.uv.fs_stat(vim.fs.joinpath(root, 'compile_commands.json')) then
    health.ok('compile_commands.json is at the root')
  end
end

---@param program_version string?
local function check_clients(program_version)
  health.start('warplens: language server')
  local clients = vim.lsp.get_clients({ name = 'warplens' })
  if not vim.lsp.is_enabled('warplens') then
    if #clients == 0 then
      health.warn('not enabled', { "Add `vim.lsp.enable('warplens')` to your configuration" })
    else
      health.info("started by other means than vim.lsp.enable('warplens')")
    end
  end
  if #clients == 0 then
    health.info('attached to no buffer: open a .cu, .cuh, .hip or .cl file')
    return
  end
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_keys(require('warplens').buffers(client.id))
    table.sort(buffers)
    health.ok(
      ('client %d is attached to %d buffer(s), root %s'):format(
        client.id,
        #buffers,
        client.root_dir or '(none)'
      )
    )
    local running = vim.tbl_get(client, 'server_info', 'version')
    if running and program_version and not program_version:find(running, 1, true) then
      health.warn(('the running server is %s, the program is %s'):format(running, program_version), {
        "Restart it: vim.lsp.enable('warplens', false), then vim.lsp.enable('warplens')",
      })
    end
    local clash = false
    for _, bufnr in ipairs(buffers) do
      clash = check_encoding(client, bufnr) or clash
    end
    if not clash then
      health.ok(('columns are counted in %s, as by every other client'):format(client.offset_encoding))
    end
    check_settings(client)
    local gpu
    for _, bufnr in ipairs(buffers) do
      gpu = gpu or target(client, bufnr)
    end
    if gpu then
      health.ok(('the target is %s (:Warplens gpu changes it)'):format(gpu))
    else
      health.info('no open file has a kernel, so no target is in use yet')
    end
  end
end

function M.check()
  health.start('warplens: editor')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok(('Neovim %s'):format(vim.version()))
  else
    health.error(('Neovim %s is too old'):format(vim.version()), { 'Use 0.11 or newer' })
    return
  end
  check_clients(check_program())
end

return M
