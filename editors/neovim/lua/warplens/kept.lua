--- Launches that the user keeps for a workspace: set again when the server attaches to their files.
local M = {}

--- The file that holds them, by document and kernel.
---@return string
local function file()
  return vim.fs.joinpath(vim.fn.stdpath('state'), 'warplens', 'launches.json')
end

---@return table<string, table<string, table>>
local function all()
  local read, lines = pcall(vim.fn.readfile, file())
  local decoded, launches = pcall(vim.json.decode, read and table.concat(lines, '\n') or '')
  return decoded and type(launches) == 'table' and launches or {}
end

--- Keeps a launch, or with nil forgets it.
---@param bufnr integer
---@param kernel string
---@param launch? warplens.Launch
function M.keep(bufnr, kernel, launch)
  local launches = all()
  local uri = vim.uri_from_bufnr(bufnr)
  local own = launches[uri] or {}
  own[kernel] = launch
  launches[uri] = next(own) and own or nil
  vim.fn.mkdir(vim.fs.dirname(file()), 'p')
  vim.fn.writefile({ vim.json.encode(next(launches) and launches or vim.empty_dict()) }, file())
end

--- Sets the kept launches of a buffer.
---@param bufnr integer
function M.restore(bufnr)
  local uri = vim.uri_from_bufnr(bufnr)
  for kernel, launch in pairs(all()[uri] or {}) do
    local argument = vim.tbl_extend('force', launch, { uri = uri, kernel = kernel })
    require('warplens').execute(bufnr, 'warplens.setLaunch', argument, function(_, client)
      require('warplens').refresh_lenses(client.id)
    end)
  end
end

return M
