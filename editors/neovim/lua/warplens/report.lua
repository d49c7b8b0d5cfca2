--- The report of a file as text: what `warplens.estimate` answers, laid out for reading.
local M = {}

--- Width of a full bar.
local BAR = 24
--- Lines of a kernel that are listed.
local MOST_LINES = 8

---@param share number of 1
local function bar(share)
  local eighths = math.floor(math.max(0, math.min(share, 1)) * BAR * 8 + 0.5)
  local part = { [0] = '', '▏', '▎', '▍', '▌', '▋', '▊', '▉' }
  local text = ('█'):rep(math.floor(eighths / 8)) .. part[eighths % 8]
  return text .. (' '):rep(BAR - vim.fn.strdisplaywidth(text))
end

--- A time with three digits and the unit that suits it.
---@param ms number
function M.time(ms)
  for _, unit in ipairs({ { 1000, 's', 1e-3 }, { 1, 'ms', 1 }, { 1e-3, 'µs', 1e3 } }) do
    if ms >= unit[1] then
      local value = ms * unit[3]
      return ('%%.%df %%s'):format(value < 10 and 2 or value < 100 and 1 or 0):format(value, unit[2])
    end
  end
  return ('%.0f ns'):format(ms * 1e6)
end

--- What bounds a kernel, in words.
---@param bottleneck any
---@return string?
local function bound_by(bottleneck)
  if type(bottleneck) == 'string' then
    return bottleneck == 'shared' and 'shared memory' or (bottleneck:gsub('_', ' '))
  end
end

--- Thousands apart, as whole cycles are read.
---@param cycles number
local function whole(cycles)
  local digits = ('%.0f'):format(cycles)
  local text = digits:reverse():gsub('(%d%d%d)', '%1,'):reverse()
  return (text:gsub('^,', ''))
end

---@param value any
local function known(value)
  return type(value) == 'number' and value == value
end

---@param sizes integer[]
local function extents(sizes)
  local shown = vim.deepcopy(sizes)
  while #shown > 1 and shown[#shown] == 1 do
    table.remove(shown)
  end
  return table.concat(shown, 'x')
end

--- The estimate that is shown first: the settings' model where it has an answer.
---@param kernel table
---@return table?, string?
function M.shown_estimate(kernel)
  local estimates = kernel.estimates or {}
  local models = vim.tbl_keys(estimates)
  table.sort(models, function(a, b)
    return a == 'auto' or (b ~= 'auto' and a < b)
  end)
  for _, model in ipairs(models) do
    local estimate = estimates[model]
    if type(estimate) == 'table' and known(estimate.cycles) then
      return estimate, model
    end
  end
end

---@param out string[]
---@param estimate table
local function breakdown(out, estimate)
  local parts = {}
  for name, cycles in pairs(estimate.breakdown or {}) do
    if known(cycles) and cycles > 0 then
      table.insert(parts, { name = name, cycles = cycles })
    end
  end
  table.sort(parts, function(a, b)
    return a.cycles > b.cycles
  end)
  table.insert(out, '### Cycles')
  table.insert(out, '')
  for _, part in ipairs(parts) do
    local share = part.cycles / estimate.cycles
    local name = bound_by(part.name)
    table.insert(out, ('    %-18s %s %3.0f %%  %s'):format(name, bar(share), share * 100, whole(part.cycles)))
  end
  table.insert(out, '')
end

---@param out string[]
---@param kernel table
---@param source fun(file: string, line: integer): string?
local function hot_lines(out, kernel, source)
  local lines = vim.tbl_filter(function(line)
    return line.share >= 0.01
  end, kernel.lines or {})
  if #lines == 0 then
    return
  end
  table.sort(lines, function(a, b)
    return a.share > b.share
  end)
  table.insert(out, '### Lines')
  table.insert(out, '')
  for index, line in ipairs(lines) do
    if index > MOST_LINES then
      table.insert(out, ('    and %d more'):format(#lines - MOST_LINES))
      break
    end
    local text = source(line.file, line.line) or vim.fs.basename(line.file)
    table.insert(out, ('    %5d  %s %3.0f %%  %s'):format(line.line, bar(line.share), line.share * 100, text))
  end
  table.insert(out, '')
end

---@param out string[]
---@param kernel table
local function causes(out, kernel)
  local helps = vim.tbl_filter(function(what)
    return known(what.speedup) and what.speedup > 1.005
  end, kernel.what_if or {})
  if #helps == 0 then
    return
  end
  table.sort(helps, function(a, b)
    return a.speedup > b.speedup
  end)
  table.insert(out, '### Without')
  table.insert(out, '')
  for _, what in ipairs(helps) do
    table.insert(out, ('    %-18s %.2fx faster'):format(what.factor:gsub('%-', ' '), what.speedup))
  end
  table.insert(out, '')
end

---@param out string[]
---@param kernel table
local function models(out, kernel)
  local rows = {}
  for model, estimate in pairs(kernel.estimates or {}) do
    if known(estimate.time_ms) then
      table.insert(rows, { model = model, ms = estimate.time_ms, bound = estimate.bottleneck })
    end
  end
  if #rows < 2 then
    return
  end
  table.sort(rows, function(a, b)
    return a.model < b.model
  end)
  local longest = 0
  for _, row in ipairs(rows) do
    longest = math.max(longest, row.ms)
  end
  table.insert(out, '### Models')
  table.insert(out, '')
  for _, row in ipairs(rows) do
    local time = M.time(row.ms)
    time = (' '):rep(math.max(0, 8 - vim.fn.strdisplaywidth(time))) .. time
    local bound = bound_by(row.bound) or ''
    table.insert(out, ('    %-8s %s %s  %s'):format(row.model, bar(row.ms / longest), time, bound))
  end
  table.insert(out, '')
end

---@param out string[]
---@param kernel table
---@param source fun(file: string, line: integer): string?
local function one(out, kernel, source)
  local estimate = M.shown_estimate(kernel)
  local launch = kernel.launch
  table.insert(out, ('## %s, line %d'):format(kernel.kernel, kernel.line))
  table.insert(out, '')
  table.insert(
    out,
    ('%s blocks of %s threads on %s'):format(extents(launch.grid), extents(launch.block), kernel.gpu)
  )
  if not estimate then
    table.insert(out, 'No model predicts a time for it.')
  else
    local time = known(estimate.time_ms) and M.time(estimate.time_ms) .. ', ' or ''
    local range = type(estimate.interval) == 'table'
        and known(estimate.interval[1])
        and known(estimate.interval[2])
        and (' (%s to %s)'):format(whole(estimate.interval[1]), whole(estimate.interval[2]))
      or ''
    local bound = bound_by(estimate.bottleneck) or 'nothing known'
    table.insert(out, ('%s%s cycles%s, bound by %s'):format(time, whole(estimate.cycles), range, bound))
  end
  local occupancy, resources = kernel.occupancy, kernel.resources
  table.insert(
    out,
    ('occupancy %.0f %% (%s), %s registers per thread (%s), %s bytes of shared memory per block'):format(
      occupancy.fraction * 100,
      occupancy.limiter,
      tostring(resources.registers_per_thread),
      resources.registers_source,
      whole(resources.static_shared_bytes + launch.dynamic_shared_bytes)
    )
  )
  for _, assumed in ipairs(kernel.assumptions or {}) do
    table.insert(out, ('assumed: %s = %s (%s)'):format(assumed.symbol, tostring(assumed.value), assumed.source))
  end
  table.insert(out, '')
  if estimate then
    breakdown(out, estimate)
  end
  hot_lines(out, kernel, source)
  causes(out, kernel)
  models(out, kernel)
end

--- The report as Markdown with figures in columns.
---@param answer table of `warplens.estimate`
---@param name string of the file
---@param source fun(file: string, line: integer): string? the text of a line, without indentation
---@return string
function M.text(answer, name, source)
  local out = { '# ' .. name, '' }
  local kernels = vim.deepcopy(answer.results)
  table.sort(kernels, function(a, b)
    return a.line < b.line
  end)
  for _, kernel in ipairs(kernels) do
    one(out, kernel, source)
  end
  if #kernels == 0 then
    table.insert(out, 'No kernel was found in this file.')
  end
  return table.concat(out, '\n')
end

return M
