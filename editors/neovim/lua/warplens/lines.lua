--- The breakdown of the line that the cursor rests on, as virtual lines below it: what a hover there says.
local warplens = require('warplens')

local M = {}

local namespace = vim.api.nvim_create_namespace('warplens.lines')
local group = vim.api.nvim_create_augroup('warplens.lines', {})

--- How long the cursor has to rest on a line.
local REST_MS = 80
--- More of a line than this is what a hover is for.
local MOST_LINES = 12

vim.api.nvim_set_hl(0, 'WarplensLines', { link = 'Comment', default = true })

--- The rows of a table with their cells one below the other.
---@param rows string[][]
---@return string[]
local function aligned(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for column, cell in ipairs(row) do
      widths[column] = math.max(widths[column] or 0, vim.fn.strdisplaywidth(cell))
    end
  end
  return vim.tbl_map(function(row)
    local cells = {}
    for column, cell in ipairs(row) do
      table.insert(cells, cell .. (' '):rep(widths[column] - vim.fn.strdisplaywidth(cell)))
    end
    return (table.concat(cells, '  '):gsub('%s+$', ''))
  end, rows)
end

--- Removes the marks of code and strong text; text inside code stays unchanged.
---@param text string
local function unmarked(text)
  local pieces = vim.split(text, '`', { plain = true })
  for index = 1, #pieces, 2 do
    pieces[index] = pieces[index]:gsub('%*%*', '')
  end
  return table.concat(pieces)
end

--- Markdown as plain lines: tables in columns, without marks, rules and blank lines.
---@param markdown string
---@return string[]
function M.plain(markdown)
  local lines, rows = {}, {}
  local function end_table()
    vim.list_extend(lines, aligned(rows))
    rows = {}
  end
  for line in vim.gsplit(markdown, '\n') do
    local text = unmarked(line)
    local row = line:match('^|%s*(.-)%s*|%s*$')
    if line:match('^[-%s]*$') then
      end_table()
    elseif line:match('^[|:%s-]*$') then
      -- The rule below a table's head: its rows go on.
    elseif row then
      -- A bar behind a backslash is text.
      local cells = vim.split(row:gsub('\\|', '\1'), '|', { plain = true })
      table.insert(rows, vim.tbl_map(function(cell)
        return vim.trim(unmarked((cell:gsub('\1', '|'))))
      end, cells))
    else
      end_table()
      table.insert(lines, text)
    end
  end
  end_table()
  if #lines > MOST_LINES then
    local more = #lines - MOST_LINES + 1
    lines = vim.list_slice(lines, 1, MOST_LINES - 1)
    table.insert(lines, ('and %d more lines: K shows all'):format(more))
  end
  return lines
end

---@param bufnr integer
local function clear(bufnr)
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
end

---@param bufnr integer
---@param line integer 0-based
---@param text string
local function draw(bufnr, line, text)
  clear(bufnr)
  local indent = (vim.api.nvim_buf_get_lines(bufnr, line, line + 1, false)[1] or ''):match('^%s*')
  local below = {}
  for _, plain in ipairs(M.plain(text)) do
    table.insert(below, { { indent .. '│ ' .. plain, 'WarplensLines' } })
  end
  vim.api.nvim_buf_set_extmark(bufnr, namespace, line, 0, { virt_lines = below })
end

local requests = {} ---@type table<integer, integer> requests sent for each buffer that shows its lines

---@param bufnr integer
local function ask(bufnr)
  local window = vim.fn.bufwinid(bufnr)
  local client = warplens.client(bufnr)
  if not requests[bufnr] or window == -1 or not client then
    return
  end
  requests[bufnr] = requests[bufnr] + 1
  local request = requests[bufnr]
  local line = vim.api.nvim_win_get_cursor(window)[1] - 1
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  client:request('textDocument/hover', {
    textDocument = vim.lsp.util.make_text_document_params(bufnr),
    -- Before the text, where no kernel's name is: request the hover of the line.
    position = { line = line, character = 0 },
  }, function(failure, hover)
    if requests[bufnr] ~= request or not vim.api.nvim_buf_is_loaded(bufnr) then
      return
    end
    local text = not failure and vim.tbl_get(hover or {}, 'contents', 'value')
    if type(text) ~= 'string' then
      clear(bufnr)
    elseif vim.api.nvim_buf_get_changedtick(bufnr) == tick then
      draw(bufnr, line, text)
    end
  end, bufnr)
end

local timers = {} ---@type table<integer, uv.uv_timer_t>

---@param bufnr integer
local function rest(bufnr)
  timers[bufnr] = timers[bufnr] or assert(vim.uv.new_timer())
  timers[bufnr]:start(REST_MS, 0, vim.schedule_wrap(function()
    ask(bufnr)
  end))
end

--- Whether a buffer shows the breakdown of the cursor's line.
---@param bufnr integer
function M.shown(bufnr)
  return requests[bufnr] ~= nil
end

--- Shows or hides the breakdown of the cursor's line.
---@param bufnr integer
---@param on boolean
function M.show(bufnr, on)
  vim.api.nvim_clear_autocmds({ group = group, buffer = bufnr })
  if not on then
    requests[bufnr] = nil
    if timers[bufnr] then
      timers[bufnr]:stop()
      timers[bufnr]:close()
      timers[bufnr] = nil
    end
    if vim.api.nvim_buf_is_valid(bufnr) then
      clear(bufnr)
    end
    return
  end
  requests[bufnr] = 0
  local last = 0
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'TextChanged', 'TextChangedI', 'BufEnter' }, {
    group = group,
    buffer = bufnr,
    callback = function(event)
      local line = vim.api.nvim_win_get_cursor(0)[1]
      if line ~= last then
        -- Virtual lines below another line than the cursor's are in the way.
        clear(bufnr)
      elseif event.event == 'CursorMoved' or event.event == 'CursorMovedI' then
        return
      end
      last = line
      rest(bufnr)
    end,
  })
  ask(bufnr)
end

--- The figures of a buffer have changed for another reason than an edit.
---@param bufnr integer
function M.stale(bufnr)
  if requests[bufnr] then
    rest(bufnr)
  end
end

return M
