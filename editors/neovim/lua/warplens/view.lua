--- Windows that show what the server answered.
local M = {}

--- Shows text in a read-only window below, one for each name; `q` closes it.
---@param name string
---@param filetype string
---@param text string
function M.open(name, filetype, text)
  local title = 'warplens://' .. name
  local bufnr = vim.iter(vim.api.nvim_list_bufs()):find(function(candidate)
    return vim.api.nvim_buf_get_name(candidate) == title
  end)
  if not bufnr then
    bufnr = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(bufnr, title)
    vim.bo[bufnr].bufhidden = 'wipe'
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, desc = 'Close this window' })
  end
  vim.bo[bufnr].modifiable = true
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, vim.split(vim.trim(text), '\r?\n'))
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = filetype

  local window = vim.fn.bufwinid(bufnr)
  if window == -1 then
    local lines = vim.api.nvim_buf_line_count(bufnr)
    window = vim.api.nvim_open_win(bufnr, true, {
      split = 'below',
      win = 0,
      height = math.max(3, math.min(lines, math.floor(vim.o.lines / 2))),
    })
    vim.wo[window][0].wrap = false
    vim.wo[window][0].number = false
  else
    vim.api.nvim_set_current_win(window)
  end
end

--- JSON for reading: indented, keys in order.
---@param value any
---@param indent? string
---@return string
function M.json(value, indent)
  indent = indent or ''
  if type(value) ~= 'table' or next(value) == nil then
    return vim.json.encode(value)
  end
  local inner = indent .. '  '
  local parts = {}
  if vim.islist(value) then
    local plain = vim.iter(value):all(function(item)
      return type(item) ~= 'table'
    end)
    if plain then
      return vim.json.encode(value)
    end
    for _, item in ipairs(value) do
      table.insert(parts, inner .. M.json(item, inner))
    end
    return '[\n' .. table.concat(parts, ',\n') .. '\n' .. indent .. ']'
  end
  local keys = vim.tbl_keys(value)
  table.sort(keys)
  for _, key in ipairs(keys) do
    table.insert(parts, ('%s%s: %s'):format(inner, vim.json.encode(key), M.json(value[key], inner)))
  end
  return '{\n' .. table.concat(parts, ',\n') .. '\n' .. indent .. '}'
end

return M
