--- Signs that show where a kernel's cycles go.
local figures = require('warplens.figures')

local M = {}

local namespace = vim.api.nvim_create_namespace('warplens.heat')

--- From which share of its kernel's cycles a line has which sign, the hottest first.
local LEVELS = {
  { from = 0.40, sign = '█', link = 'DiagnosticSignError' },
  { from = 0.20, sign = '▆', link = 'DiagnosticSignWarn' },
  { from = 0.10, sign = '▄', link = 'DiagnosticSignWarn' },
  { from = 0.03, sign = '▂', link = 'DiagnosticSignInfo' },
  { from = 0.01, sign = '▁', link = 'DiagnosticSignHint' },
}

for level, heat in ipairs(LEVELS) do
  heat.group = ('WarplensHeat%d'):format(#LEVELS + 1 - level)
  vim.api.nvim_set_hl(0, heat.group, { link = heat.link, default = true })
end

--- The largest share of each line of a file: a line of a function that several kernels call is as hot as in the kernel
--- that it is hottest in.
---@param answer table of `warplens.estimate`
---@param file string
---@return table<integer, number> by 1-based line
function M.shares(answer, file)
  local shares = {}
  for _, kernel in ipairs(answer.results) do
    for _, line in ipairs(kernel.lines or {}) do
      if vim.fs.normalize(line.file) == file then
        shares[line.line] = math.max(shares[line.line] or 0, line.share)
      end
    end
  end
  return shares
end

---@param bufnr integer
---@param answer table
local function draw(bufnr, answer)
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  local count = vim.api.nvim_buf_line_count(bufnr)
  local file = vim.fs.normalize(vim.api.nvim_buf_get_name(bufnr))
  for line, share in pairs(M.shares(answer, file)) do
    for _, heat in ipairs(LEVELS) do
      if share >= heat.from and line <= count then
        vim.api.nvim_buf_set_extmark(bufnr, namespace, line - 1, 0, {
          sign_text = heat.sign,
          sign_hl_group = heat.group,
          -- Also where the one column of signs has a finding in it.
          number_hl_group = heat.group,
          -- Below those of diagnostics, which have 10 and more: a finding says more than its heat.
          priority = 5,
        })
        break
      end
    end
  end
end

local shown = {} ---@type table<integer, true>

--- Whether the heat map is shown in a buffer.
---@param bufnr integer
function M.shown(bufnr)
  return shown[bufnr] == true
end

--- Shows or hides the heat map of a buffer.
---@param bufnr integer
---@param on boolean
function M.show(bufnr, on)
  shown[bufnr] = on or nil
  if on then
    figures.watch(bufnr, 'heat', function(answer)
      draw(bufnr, answer)
    end)
  else
    figures.unwatch(bufnr, 'heat')
    if vim.api.nvim_buf_is_valid(bufnr) then
      vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
    end
  end
end

return M
