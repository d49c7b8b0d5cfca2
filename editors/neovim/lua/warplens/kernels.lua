--- Lists of kernels and fixes to choose from.
local warplens = require('warplens')
local view = require('warplens.view')

local M = {}

--- `1.11 ms · memory bandwidth · 1.58x: smem/bank-conflict`
---@param kernel table an entry of what `warplens.kernels` answers
---@return string
function M.describe(kernel)
  if type(kernel.why_impossible) == 'string' then
    return 'cannot launch: ' .. kernel.why_impossible
  end
  local parts = { type(kernel.time) == 'string' and kernel.time:gsub('`', '') or 'no estimate' }
  if type(kernel.bottleneck) == 'string' then
    table.insert(parts, kernel.bottleneck)
  end
  if type(kernel.best) == 'table' then
    table.insert(parts, ('%.2fx: %s'):format(kernel.best.gain, kernel.best.rule))
  elseif kernel.findings > 0 then
    table.insert(parts, ('%d finding%s'):format(kernel.findings, kernel.findings == 1 and '' or 's'))
  end
  return table.concat(parts, ' · ')
end

--- Has the user choose among the kernels of all open files, those that take longest first.
---@param bufnr integer
---@param prompt string
---@param filter string what their names or files must hold
---@param on_choice fun(kernel: table)
local function choose(bufnr, prompt, filter, on_choice)
  warplens.execute(bufnr, 'warplens.kernels', {}, function(answer)
    local found = vim.tbl_filter(function(kernel)
      local text = (kernel.kernel .. ' ' .. vim.fs.basename(vim.uri_to_fname(kernel.uri))):lower()
      return text:find(filter:lower(), 1, true) ~= nil
    end, answer.kernels)
    if #found == 0 then
      return warplens.notify('there is no such kernel in the open files')
    end
    vim.ui.select(found, {
      prompt = prompt,
      kind = 'warplens.kernels',
      format_item = function(kernel)
        local name = vim.fs.basename(vim.uri_to_fname(kernel.uri))
        return ('%-24s %s (%s)'):format(kernel.kernel, M.describe(kernel), name)
      end,
    }, function(kernel)
      if kernel then
        on_choice(kernel)
      end
    end)
  end)
end

--- Jumps to a kernel of the open files.
---@param bufnr integer
---@param filter? string
function M.pick(bufnr, filter)
  choose(bufnr, 'Kernels, the slowest first', filter or '', function(kernel)
    local client = warplens.client(bufnr)
    vim.lsp.util.show_document(
      { uri = kernel.uri, range = kernel.range },
      client and client.offset_encoding or 'utf-16',
      { focus = true }
    )
  end)
end

--- Shows a kernel beside another one.
---@param bufnr integer
---@param kernel string
function M.compare(bufnr, kernel)
  choose(bufnr, ('Compare %s with'):format(kernel), '', function(other)
    local argument = {
      uri = vim.uri_from_bufnr(bufnr),
      kernel = kernel,
      with = { uri = other.uri, kernel = other.kernel },
    }
    warplens.execute(bufnr, 'warplens.compareKernels', argument, function(answer)
      view.float(('kernels/%s %s'):format(kernel, other.kernel), answer.markdown)
    end)
  end)
end

--- Lists the fixes of a file, the largest gain first; one that is chosen is made.
---@param bufnr integer
function M.fixes(bufnr)
  warplens.execute(bufnr, 'warplens.fixes', { uri = vim.uri_from_bufnr(bufnr) }, function(answer, client)
    if #answer.entries == 0 then
      return warplens.notify('no fix is offered in this file', vim.log.levels.INFO)
    end
    vim.ui.select(answer.entries, {
      prompt = 'Fixes in this file',
      kind = 'warplens.fixes',
      format_item = function(action)
        return ('%s (%s)'):format(action.title, action.rule)
      end,
    }, function(action)
      if action then
        vim.lsp.util.apply_workspace_edit(action.edit, client.offset_encoding)
      end
    end)
  end)
end

return M
