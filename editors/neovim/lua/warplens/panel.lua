--- The launch panel: a kernel's launch in a floating window, its predicted time and other blocks while it is typed.
local warplens = require('warplens')
local kept = require('warplens.kept')

local M = {}

--- How long after a keystroke the launch is tried.
local PAUSE_MS = 150
--- The width of the table's bar for the slowest block.
local BAR = 20

local namespace = vim.api.nvim_create_namespace('warplens.panel')

---@param sizes integer[]
local function size(sizes)
  local last = sizes[3] ~= 1 and 3 or sizes[2] ~= 1 and 2 or 1
  return table.concat(vim.list_slice(sizes, 1, last), ',')
end

--- The first line at first: what holds, where something gives it.
---@param trial table what `warplens.tryLaunch` answers
---@return string
function M.words(trial)
  local words = { 'block=' .. size(trial.launch.block) }
  if type(trial.launch.grid) == 'table' then
    table.insert(words, 'grid=' .. size(trial.launch.grid))
  end
  if trial.launch.dynamic_shared_bytes > 0 then
    table.insert(words, 'dynamic_shared=' .. trial.launch.dynamic_shared_bytes)
  end
  for _, argument in ipairs(trial.arguments) do
    if argument.given and type(argument.value) == 'number' then
      table.insert(words, ('%s=%d'):format(argument.name, argument.value))
    end
  end
  return table.concat(words, ' ')
end

---@param share number
local function percent(share)
  return ('%.0f %%'):format(share * 100)
end

--- The lines below the launch: its figures, a row for each block, what would be written above the kernel.
---@param trial table what `warplens.tryLaunch` answers
---@return string[]
function M.lines(trial)
  if type(trial.why_impossible) == 'string' then
    return { 'cannot launch: ' .. trial.why_impossible }
  end
  local parts = { type(trial.time) == 'string' and trial.time or 'no estimate' }
  if type(trial.bottleneck) == 'string' then
    table.insert(parts, trial.bottleneck)
  end
  table.insert(parts, ('occupancy %s (%s)'):format(percent(trial.occupancy), trial.limiter))
  if type(trial.waves) == 'number' then
    table.insert(parts, ('%s waves'):format(('%.2f'):format(trial.waves):gsub('%.?0+$', '')))
  end
  local lines = { table.concat(parts, ' · '), trial.gpu.name, '' }
  if type(trial.fixed) == 'string' then
    vim.list_extend(lines, { trial.fixed, '' })
  else
    local longest = 0
    for _, choice in ipairs(trial.choices) do
      longest = math.max(longest, type(choice.time_ms) == 'number' and choice.time_ms or 0)
    end
    table.insert(lines, ('  %-10s %-*s %12s  %s'):format('block', BAR, '', 'time', 'occupancy'))
    for _, choice in ipairs(trial.choices) do
      local time = type(choice.time_ms) == 'number' and choice.time_ms or 0
      local length = longest > 0 and time > 0 and math.max(1, math.floor(BAR * time / longest + 0.5)) or 0
      local bar = ('█'):rep(length) .. (' '):rep(BAR - length)
      -- Not %12s: it counts bytes, and a µ has two.
      local shown = (' '):rep(12 - vim.fn.strdisplaywidth(choice.time)) .. choice.time
      local mark = choice.now and '*' or ' '
      table.insert(lines, ('%s %-10s %s %s  %s'):format(mark, size(choice.block), bar, shown, percent(choice.occupancy)))
    end
    table.insert(lines, '')
    if type(trial.stand_ins) == 'string' then
      vim.list_extend(lines, { ('With %s, which nothing gives.'):format(trial.stand_ins:gsub('`', '')), '' })
    end
  end
  table.insert(lines, trial.directive)
  return lines
end

local KEYS = '<CR> use for this session  D write as directive  K keep for this workspace  X take back  q close'

--- Puts lines below the first one.
---@param bufnr integer
---@param lines string[]
local function put(bufnr, lines)
  local all = vim.list_extend({ '' }, lines)
  vim.list_extend(all, { '', KEYS })
  vim.api.nvim_buf_set_lines(bufnr, 1, -1, false, all)
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  for number, line in ipairs(all) do
    local group = line:match('^%*') and 'DiagnosticOk' or line == KEYS and 'Comment' or nil
    if group then
      vim.api.nvim_buf_set_extmark(bufnr, namespace, number, 0, { end_col = #line, hl_group = group })
    end
  end
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    local widest = 60
    for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
      widest = math.max(widest, vim.fn.strdisplaywidth(line))
    end
    vim.api.nvim_win_set_config(window, {
      relative = 'editor',
      width = math.max(1, math.min(widest + 1, vim.o.columns - 4)),
      height = math.max(1, math.min(#all + 1, vim.o.lines - 5)),
      row = 2,
      col = math.max(0, math.floor((vim.o.columns - math.min(widest, vim.o.columns - 4)) / 2)),
    })
    vim.wo[window][0].wrap = false
  end
end

--- Opens the panel of a kernel.
---@param source integer the buffer that the kernel is in
---@param kernel string
function M.open(source, kernel)
  local parse = require('warplens.commands').parse_launch
  local target = { uri = vim.uri_from_bufnr(source), kernel = kernel }
  warplens.execute(source, 'warplens.tryLaunch', target, function(first)
    local bufnr = vim.api.nvim_create_buf(false, true)
    vim.bo[bufnr].bufhidden = 'wipe'
    vim.b[bufnr].warplens_panel = kernel
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { M.words(first) })
    vim.api.nvim_open_win(bufnr, true, {
      relative = 'editor',
      width = 60,
      height = 10,
      row = 2,
      col = 2,
      border = vim.o.winborder ~= '' and vim.o.winborder or 'rounded',
      title = (' Launch of %s '):format(kernel),
      title_pos = 'center',
      style = 'minimal',
    })
    put(bufnr, M.lines(first))
    local request = 0

    --- What is typed, or nil and what is wrong with it.
    local function typed()
      local launch, why = parse(vim.api.nvim_buf_get_lines(bufnr, 0, 1, false)[1] or '')
      if launch then
        launch.kernel = nil
      end
      return launch, why
    end
    local function try(on_trial)
      local launch, why = typed()
      if not launch then
        return put(bufnr, { why })
      end
      request = request + 1
      local own = request
      warplens.execute(source, 'warplens.tryLaunch', vim.tbl_extend('force', launch, target), function(trial)
        if own ~= request or not vim.api.nvim_buf_is_valid(bufnr) then
          return
        end
        put(bufnr, M.lines(trial))
        if on_trial then
          on_trial(trial)
        end
      end)
    end

    local timer = assert(vim.uv.new_timer())
    local before = vim.api.nvim_buf_get_lines(bufnr, 0, 1, false)[1]
    vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI' }, {
      buffer = bufnr,
      callback = function()
        local now = vim.api.nvim_buf_get_lines(bufnr, 0, 1, false)[1]
        if now ~= before then
          before = now
          timer:start(PAUSE_MS, 0, vim.schedule_wrap(function()
            if vim.api.nvim_buf_is_valid(bufnr) then
              try()
            end
          end))
        end
      end,
    })
    vim.api.nvim_create_autocmd('BufWipeout', {
      buffer = bufnr,
      callback = function()
        timer:stop()
        timer:close()
      end,
    })

    --- Runs a command with the launch that is typed.
    local function with_typed(run)
      local launch, why = typed()
      if not launch then
        return warplens.notify(why --[[@as string]])
      end
      run(launch)
    end
    local function set(launch, said)
      warplens.execute(source, 'warplens.setLaunch', vim.tbl_extend('force', launch, target), function(_, client)
        warplens.refresh_lenses(client.id)
        vim.api.nvim_echo({ { ('warplens: %s: %s'):format(kernel, said) } }, false, {})
      end)
    end
    local function map(key, what, run)
      vim.keymap.set('n', key, run, { buffer = bufnr, nowait = true, desc = what })
    end
    map('q', 'Close this window', '<Cmd>close<CR>')
    map('<CR>', 'Use this launch for this session', function()
      with_typed(function(launch)
        set(launch, 'launch set')
      end)
    end)
    map('K', 'Keep this launch for this workspace', function()
      with_typed(function(launch)
        kept.keep(source, kernel, launch)
        set(launch, 'launch kept')
      end)
    end)
    map('X', 'Take the launch back', function()
      kept.keep(source, kernel, nil)
      set({}, 'launch taken back')
    end)
    map('D', 'Write this launch as a directive above the kernel', function()
      try(function(trial)
        local client = warplens.client(source)
        if type(trial.edit) ~= 'table' then
          return warplens.notify('there is no line above the kernel to write it on')
        end
        vim.lsp.util.apply_workspace_edit(trial.edit, client and client.offset_encoding or 'utf-16')
      end)
    end)
  end)
end

return M
