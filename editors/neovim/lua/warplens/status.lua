--- What the status line says of a buffer with a server.
local figures = require('warplens.figures')

local M = {}

--- The kernel at a line: the last one that begins above it.
---@param answer table
---@param line integer
---@return table?
local function kernel_at(answer, line)
  local here
  for _, kernel in ipairs(answer.results) do
    if kernel.line <= line and (not here or kernel.line > here.line) then
      here = kernel
    end
  end
  return here
end

---@param bufnr integer
---@param client vim.lsp.Client
---@return string
function M.text(bufnr, client)
  if not client.initialized then
    return 'warplens: starting'
  end
  -- A status line must stay current: from here on figures are requested when they change.
  if not figures.newest(bufnr) then
    figures.watch(bufnr, 'status', function()
      vim.schedule(function()
        vim.cmd.redrawstatus({ bang = true })
      end)
    end)
  end
  local answer = figures.newest(bufnr)
  local parts = {}
  local first = answer and answer.results[1]
  if first then
    local default = require('warplens').gpu_source(bufnr) == 'default'
    table.insert(parts, first.gpu .. (default and ' (default)' or ''))
    local window = vim.fn.bufwinid(bufnr)
    local line = window == -1 and 1 or vim.api.nvim_win_get_cursor(window)[1]
    local kernel = kernel_at(answer, line)
    local estimate = kernel and require('warplens.report').shown_estimate(kernel)
    if estimate and type(estimate.time_ms) == 'number' then
      table.insert(parts, ('%s %s'):format(kernel.kernel, require('warplens.report').time(estimate.time_ms)))
    end
  end
  local findings = vim.tbl_filter(function(found)
    return found.source == 'warplens'
  end, vim.diagnostic.get(bufnr))
  local lost = vim.tbl_filter(function(found)
    return found.code == 'internal/lost-kernel'
  end, findings)
  if #lost > 0 then
    table.insert(parts, #lost == 1 and '1 kernel lost' or ('%d kernels lost'):format(#lost))
  end
  if #findings > 0 then
    table.insert(parts, #findings == 1 and '1 finding' or ('%d findings'):format(#findings))
  end
  return #parts > 0 and table.concat(parts, ' · ') or 'warplens'
end

return M
