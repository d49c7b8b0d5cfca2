-- A picture of what a person sees, each cell of the screen drawn as SVG. Started by run.sh with WARPLENS_PROJECT, and
-- WARPLENS_PICTURE, the file to write.

local COLUMNS, ROWS = 140, 24
-- The default text's colour, where it is a background.
local LIGHT = 0xe0e2ea
-- Of a cell, in units of the picture.
local WIDTH, HEIGHT = 8.4, 18

vim.o.columns, vim.o.lines = COLUMNS, ROWS
vim.o.termguicolors = true
vim.o.laststatus = 0
vim.o.wrap = false
vim.o.number = true
vim.cmd.edit(vim.env.WARPLENS_PROJECT .. '/transpose.cu')
vim.fn.search('void transpose_tiled')
vim.cmd('normal! zt')

local function everything()
  vim.cmd('redraw!')
  local lines = {}
  for row = 1, ROWS do
    local line = {}
    for column = 1, COLUMNS do
      line[column] = vim.fn.screenstring(row, column)
    end
    lines[row] = table.concat(line)
  end
  return table.concat(lines, '\n')
end

local seen
local shown = vim.wait(30000, function()
  seen = everything()
  return seen:find('32 passes', 1, true) and seen:find('µs', 1, true) and true or false
end, 200)
if not shown then
  io.stderr:write('no figures on the screen:\n' .. seen .. '\n')
  vim.cmd('cquit 1')
end

local function escaped(text)
  return (text:gsub('&', '&amp;'):gsub('<', '&lt;'):gsub('>', '&gt;'))
end

local function colour(number, default)
  return number and ('#%06x'):format(number) or default
end

-- Without a screen Neovim takes some groups' looks for the cursor's, which inverts colours: those are drawn plain.
local cells = {}
for row = 1, ROWS do
  cells[row] = {}
  for column = 1, COLUMNS do
    local cell = vim.api.nvim__inspect_cell(1, row - 1, column - 1)
    local look = cell[2] or {}
    local plain = look.reverse or look.background == LIGHT
    cells[row][column] = { cell[1] or ' ', not plain and look.foreground or -1, not plain and look.background or -1 }
  end
end

local svg = {}
local function add(...)
  svg[#svg + 1] = string.format(...)
end
add(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">',
  math.ceil(COLUMNS * WIDTH),
  ROWS * HEIGHT
)
add('<rect width="100%%" height="100%%" fill="#14161b"/>')
for row, line in ipairs(cells) do
  local at = 1
  while at <= #line do
    local _, foreground, background = unpack(line[at])
    local last = at
    while last < #line and vim.deep_equal({ unpack(line[last + 1], 2) }, { foreground, background }) do
      last = last + 1
    end
    local text = {}
    for column = at, last do
      text[#text + 1] = line[column][1]
    end
    text = table.concat(text)
    local ink = colour(foreground >= 0 and foreground or nil, '#e0e2ea')
    local paper = background >= 0 and colour(background) or nil
    local x, y = (at - 1) * WIDTH, (row - 1) * HEIGHT
    if paper then
      add('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>', x, y, (last - at + 1) * WIDTH, HEIGHT, paper)
    end
    if text:find('%S') then
      add(
        '<text x="%.1f" y="%d" textLength="%.1f" fill="%s" xml:space="preserve">%s</text>',
        x,
        y + 13,
        (last - at + 1) * WIDTH,
        ink,
        escaped(text)
      )
    end
    at = last + 1
  end
end
add('</svg>\n')

local out = assert(io.open(vim.env.WARPLENS_PICTURE, 'w'))
out:write(table.concat(svg, '\n'))
out:close()
vim.cmd('qall!')
