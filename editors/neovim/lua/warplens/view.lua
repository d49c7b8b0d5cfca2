--- Windows that show what the server answered.
local M = {}

--- The read-only buffer of that name with this text; `q` closes its window.
---@param name string
---@param filetype string
---@param text string
---@return integer
local function buffer(name, filetype, text)
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
  return bufnr
end

--- Shows text in a window below, one for each name.
---@param name string
---@param filetype string
---@param text string
function M.open(name, filetype, text)
  local bufnr = buffer(name, filetype, text)
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

--- The position of a buffer's floating window: as large as its text, within the editor.
---@param bufnr integer
---@param name string
---@return vim.api.keyset.win_config
local function placed(bufnr, name)
  local widest = 40
  for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  -- Its border takes two columns and two lines; the last two lines are the status and the command line.
  local width = math.max(1, math.min(widest, vim.o.columns - 4))
  local height = math.max(1, math.min(vim.api.nvim_buf_line_count(bufnr), vim.o.lines - 5))
  return {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height - 4) / 2)),
    col = math.max(0, math.floor((vim.o.columns - width - 2) / 2)),
    border = vim.o.winborder ~= '' and vim.o.winborder or 'rounded',
    title = (' %s '):format(name),
    title_pos = 'center',
    style = 'minimal',
  }
end

--- Shows Markdown in a floating window, one for each name.
---@param name string
---@param text string
function M.float(name, text)
  local bufnr = buffer(name, 'markdown', text)
  local window = vim.fn.bufwinid(bufnr)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
    return vim.api.nvim_win_set_config(window, placed(bufnr, name))
  end
  window = vim.api.nvim_open_win(bufnr, true, placed(bufnr, name))
  vim.wo[window][0].wrap = false
  vim.wo[window][0].spell = false
  vim.api.nvim_create_autocmd('VimResized', {
    buffer = bufnr,
    callback = function()
      if vim.api.nvim_win_is_valid(window) then
        vim.api.nvim_win_set_config(window, placed(bufnr, name))
      end
    end,
  })
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
