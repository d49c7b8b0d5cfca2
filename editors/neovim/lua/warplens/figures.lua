--- The newest result of `warplens.estimate` for each watched buffer. Requested when the server reports changed figures
--- and when typing pauses, never for an unwatched buffer.
local warplens = require('warplens')

local M = {}

--- How long typing pauses before the figures are requested again.
local REST_MS = 250

---@class warplens.Watched
---@field answer? table the newest estimate
---@field asking boolean an answer is on its way
---@field turn integer counts the questions, so that an answer that was overtaken is dropped
---@field timer? uv.uv_timer_t
---@field watchers table<string, fun(answer: table)> by who watches

local watched = {} ---@type table<integer, warplens.Watched>

---@param bufnr integer
local function ask(bufnr)
  local entry = watched[bufnr]
  local client = entry and vim.api.nvim_buf_is_loaded(bufnr) and warplens.client(bufnr)
  if not client then
    return
  end
  entry.turn = entry.turn + 1
  entry.asking = true
  local turn = entry.turn
  client:request('workspace/executeCommand', {
    command = 'warplens.estimate',
    arguments = { { uri = vim.uri_from_bufnr(bufnr) } },
  }, function(failure, answer)
    -- A file without kernels is a failure as well: it has no figures, and nothing has to be said about it.
    if watched[bufnr] ~= entry or turn ~= entry.turn or not vim.api.nvim_buf_is_loaded(bufnr) then
      return
    end
    entry.asking = false
    entry.answer = (not failure and type(answer) == 'table') and answer or { results = {}, diagnostics = {} }
    for _, watcher in pairs(entry.watchers) do
      watcher(entry.answer)
    end
  end, bufnr)
end

--- Calls `on_figures` with the figures of a buffer now and whenever there are new ones.
---@param bufnr integer
---@param who string
---@param on_figures fun(answer: table)
function M.watch(bufnr, who, on_figures)
  local entry = watched[bufnr]
  if not entry then
    entry = { asking = false, turn = 0, watchers = {} }
    watched[bufnr] = entry
  end
  entry.watchers[who] = on_figures
  if entry.answer then
    on_figures(entry.answer)
  elseif not entry.asking then
    ask(bufnr)
  end
end

---@param bufnr integer
---@param who string
function M.unwatch(bufnr, who)
  local entry = watched[bufnr]
  if entry then
    entry.watchers[who] = nil
  end
  if entry and not next(entry.watchers) then
    M.forget(bufnr)
  end
end

--- The newest figures of a buffer that is watched; they may be those of the text before the last edit.
---@param bufnr integer
---@return table?
function M.newest(bufnr)
  return watched[bufnr] and watched[bufnr].answer
end

--- The figures of a buffer have changed, or will have when typing rests.
---@param bufnr integer
function M.stale(bufnr)
  local entry = watched[bufnr]
  if not entry then
    return
  end
  entry.timer = entry.timer or assert(vim.uv.new_timer())
  entry.timer:start(REST_MS, 0, vim.schedule_wrap(function()
    ask(bufnr)
  end))
end

--- Forgets a buffer and its watchers.
---@param bufnr integer
function M.forget(bufnr)
  local entry = watched[bufnr]
  if entry and entry.timer then
    entry.timer:stop()
    entry.timer:close()
  end
  watched[bufnr] = nil
end

return M
