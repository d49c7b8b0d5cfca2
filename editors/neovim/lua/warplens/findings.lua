--- The findings of a buffer in the quickfix list, the one with the most to gain first.
local warplens = require('warplens')

local M = {}

local TYPES = { error = 'E', warning = 'W', information = 'I', hint = 'N' }

--- Sorted by gain; of equal ones the more severe, then the first in the file.
---@param findings table[] of `warplens.estimate`
---@return table[]
function M.sorted(findings)
  local severities = { error = 1, warning = 2, information = 3, hint = 4 }
  local function before(a, b)
    local gain_a, gain_b = tonumber(a.gain) or 1, tonumber(b.gain) or 1
    if gain_a ~= gain_b then
      return gain_a > gain_b
    elseif a.severity ~= b.severity then
      return (severities[a.severity] or 5) < (severities[b.severity] or 5)
    elseif a.line ~= b.line then
      return a.line < b.line
    end
    return a.column < b.column
  end
  local sorted = vim.list_slice(findings)
  table.sort(sorted, before)
  return sorted
end

--- Entries for |setqflist()|.
---@param findings table[]
---@return table[]
function M.entries(findings)
  return vim.tbl_map(function(finding)
    return {
      filename = finding.file,
      lnum = finding.line,
      col = finding.column,
      end_lnum = finding.end_line,
      end_col = finding.end_column,
      type = TYPES[finding.severity] or '',
      -- The message holds the gain.
      text = ('%s [%s]'):format(finding.message:gsub('\n', ' '), finding.rule),
    }
  end, M.sorted(findings))
end

--- Fills the quickfix list and opens it; says so where there is nothing to list.
---@param bufnr integer
function M.list(bufnr)
  warplens.execute(bufnr, 'warplens.estimate', { uri = vim.uri_from_bufnr(bufnr) }, function(answer)
    local entries = M.entries(answer.diagnostics)
    if #entries == 0 then
      return warplens.notify('nothing was found in this file', vim.log.levels.INFO)
    end
    vim.fn.setqflist({}, ' ', {
      title = 'warplens: ' .. vim.fs.basename(vim.api.nvim_buf_get_name(bufnr)),
      items = entries,
    })
    vim.cmd('botright copen')
  end)
end

return M
