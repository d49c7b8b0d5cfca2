--- The subcommands of :Warplens, and the same ones as code lenses call them.
local warplens = require('warplens')
local view = require('warplens.view')

local M = {}

--- How long to wait for the program when the answer is needed at once.
local PATIENCE_MS = 3000

---@class warplens.Subcommand
---@field lens? string the lens command that does the same
---@field run fun(arguments: string[], bufnr: integer)
---@field complete? fun(bufnr: integer): string[]

---@type table<string, warplens.Subcommand>
local subcommands = {}

---@param bufnr integer
local function uri(bufnr)
  return vim.uri_from_bufnr(bufnr)
end

--- Standard output of the warplens program, or nil and what it said on standard error.
---@param bufnr integer
---@param arguments string[]
---@return string?, string?
local function ask_program(bufnr, arguments)
  local command = vim.list_extend({ warplens.program(bufnr) }, arguments)
  local started, process = pcall(vim.system, command, { text = true })
  if not started then
    return nil, ('%s cannot be run'):format(command[1])
  end
  local result = process:wait(PATIENCE_MS)
  if result.code ~= 0 then
    return nil, vim.trim(result.stderr or '')
  end
  return result.stdout
end

--- The ids and names of the GPUs that have a profile, kept for each program.
local gpus_of = {} ---@type table<string, { id: string, name: string }[]>

---@param bufnr integer
---@return { id: string, name: string }[], string?
local function gpus(bufnr)
  local program = warplens.program(bufnr)
  if not gpus_of[program] then
    local output, why = ask_program(bufnr, { 'gpus', '--format', 'json' })
    if not output then
      return {}, why
    end
    local decoded, answer = pcall(vim.json.decode, output)
    if not decoded or type(answer.gpus) ~= 'table' then
      return {}, 'the list of GPUs could not be read'
    end
    gpus_of[program] = answer.gpus
  end
  return gpus_of[program]
end

--- The ids of all rules, as `warplens explain` lists them: one a line, the id first.
---@param bufnr integer
---@return string[]
local function rules(bufnr)
  local ids = {}
  for line in (ask_program(bufnr, { 'explain' }) or ''):gmatch('[^\n]+') do
    local id = line:match('^([%l%d-]+/[%l%d-]+)')
    if id then
      table.insert(ids, id)
    end
  end
  return ids
end

--- The kernels of a buffer as the server sees them, in the order of their lines.
---@param bufnr integer
---@param on_result fun(kernels: table[]) results of `warplens.estimate`
local function kernels(bufnr, on_result)
  warplens.execute(bufnr, 'warplens.estimate', { uri = uri(bufnr) }, function(answer)
    local found = answer and answer.results or {}
    table.sort(found, function(a, b)
      return a.line < b.line
    end)
    on_result(found)
  end)
end

--- Whether the lines from `first` to just before `last` (1-based) only lead up to a kernel:
--- comments, attributes, a template's head.
local function leads_up(bufnr, first, last)
  for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, first - 1, last - 1, false)) do
    local code = line:gsub('//.*', '')
    if not line:match('%S') or code:match('[;{}]') then
      return false
    end
  end
  return true
end

--- The kernel under the cursor: the last one that begins above it.
---@param bufnr integer
---@param name? string this one instead
---@param on_kernel fun(kernel: table) its result of `warplens.estimate`
local function kernel_here(bufnr, name, on_kernel)
  local window = vim.fn.bufwinid(bufnr)
  local line = window == -1 and 1 or vim.api.nvim_win_get_cursor(window)[1]
  kernels(bufnr, function(found)
    local here
    for _, kernel in ipairs(found) do
      if name then
        here = here or (kernel.kernel == name and kernel or nil)
      elseif not here or kernel.line <= line or leads_up(bufnr, line, kernel.line) then
        here = kernel
      end
    end
    if here then
      on_kernel(here)
    elseif name then
      warplens.notify(('there is no kernel %s in this file'):format(name))
    else
      warplens.notify('there is no kernel in this file')
    end
  end)
end

---@param bufnr integer
local function kernel_names(bufnr)
  local names, seen = {}, {}
  local client = warplens.client(bufnr)
  local answer = client
    and client:request_sync('workspace/executeCommand', {
      command = 'warplens.estimate',
      arguments = { { uri = uri(bufnr) } },
    }, PATIENCE_MS, bufnr)
  for _, kernel in ipairs(answer and answer.result and answer.result.results or {}) do
    if not seen[kernel.kernel] then
      seen[kernel.kernel] = true
      table.insert(names, kernel.kernel)
    end
  end
  return names
end

--- The GPUs chosen last, the newest first.
local recent_file = vim.fs.joinpath(vim.fn.stdpath('state'), 'warplens', 'gpus.json')

---@return string[]
local function recent()
  local read, lines = pcall(vim.fn.readfile, recent_file)
  local decoded, ids = pcall(vim.json.decode, read and table.concat(lines, '\n') or '')
  return decoded and vim.islist(ids) and ids or {}
end

--- Recent GPUs first, then the families as the program lists them.
---@param known { id: string, name: string }[]
---@param ids string[] the recent ones
function M.recent_first(known, ids)
  local first, rest = {}, {}
  for _, gpu in ipairs(known) do
    if not vim.list_contains(ids, gpu.id) then
      table.insert(rest, gpu)
    end
  end
  for _, id in ipairs(ids) do
    vim.list_extend(first, vim.tbl_filter(function(gpu)
      return gpu.id == id
    end, known))
  end
  return vim.list_extend(first, rest)
end

---@param bufnr integer
---@param id string
local function select_gpu(bufnr, id)
  local ids = vim.list_extend({ id }, vim.tbl_filter(function(other)
    return other ~= id
  end, recent()))
  vim.fn.mkdir(vim.fs.dirname(recent_file), 'p')
  pcall(vim.fn.writefile, { vim.json.encode(vim.list_slice(ids, 1, 3)) }, recent_file)
  warplens.execute(bufnr, 'warplens.selectGpu', { gpu = id }, function(_, client)
    warplens.refresh_lenses(client.id)
    vim.api.nvim_echo({ { 'warplens: the target is ' .. id } }, false, {})
  end)
end

--- Proposes the GPU of this machine. That runs nvidia-smi, rocminfo and clinfo: only where the user asks for it, by this
--- command or with vim.g.warplens_detect_gpu.
---@param bufnr integer
local function detect_gpu(bufnr)
  local command = { warplens.program(bufnr), 'gpus', '--detect', '--format', 'json' }
  local started = pcall(vim.system, command, { text = true }, function(result)
    vim.schedule(function()
      local decoded, answer = pcall(vim.json.decode, result.stdout or '')
      local gpus = decoded and answer.gpus or {}
      local found = vim.iter(gpus):find(function(gpu)
        return type(gpu.profile) == 'string'
      end)
      if not found then
        local what = gpus[1] and ('there is no profile for ' .. gpus[1].name) or 'no GPU was found on this machine'
        return warplens.notify(what, vim.log.levels.INFO)
      end
      vim.ui.select({ 'Use ' .. found.profile, 'Keep the target' }, {
        prompt = ('This machine has %s'):format(found.name),
        kind = 'warplens.detected',
      }, function(_, number)
        if number == 1 then
          select_gpu(bufnr, found.profile)
        end
      end)
    end)
  end)
  if not started then
    warplens.notify(('%s cannot be run'):format(command[1]))
  end
end
M.detect_gpu = detect_gpu

subcommands.gpu = {
  lens = 'warplens.selectGpu',
  run = function(arguments, bufnr)
    if arguments[1] == 'detect' then
      return detect_gpu(bufnr)
    elseif arguments[1] then
      return select_gpu(bufnr, arguments[1])
    end
    local known, why = gpus(bufnr)
    if #known == 0 then
      return warplens.notify(why or 'no GPU has a profile')
    end
    vim.ui.select(M.recent_first(known, recent()), {
      prompt = 'Target GPU',
      kind = 'warplens.gpu',
      format_item = function(gpu)
        return ('%-18s %s (%s)'):format(gpu.id, gpu.name, gpu.architecture)
      end,
    }, function(gpu)
      if gpu then
        select_gpu(bufnr, gpu.id)
      end
    end)
  end,
  complete = function(bufnr)
    return vim.list_extend({ 'detect' }, vim.tbl_map(function(gpu)
      return gpu.id
    end, (gpus(bufnr))))
  end,
}

---@class warplens.Launch what `warplens.setLaunch` takes; without sizes and values it takes a choice back
---@field kernel? string
---@field block? integer[]
---@field grid? integer[]
---@field dynamic_shared_bytes? integer
---@field args? table<string, integer>

--- Reads `block=32,8 grid=(64,64) n=1024`; an integer list in brackets may hold blanks.
---@param text string
---@return warplens.Launch?, string?
function M.parse_launch(text)
  text = text:gsub('%b()', function(list)
    return (list:sub(2, -2):gsub('%s', ''))
  end)
  local launch = {}
  for argument in text:gmatch('%S+') do
    local name, value = argument:match('^([%a_][%w_]*)=(.+)$')
    if not name then
      return nil, ('cannot read %q: expected block=32,8, grid=64,64 or NAME=NUMBER'):format(argument)
    elseif name == 'kernel' then
      launch.kernel = value
    elseif name == 'block' or name == 'grid' then
      local sizes = {}
      for _, part in ipairs(vim.split(value, '[,x]')) do
        local size = part:match('^%d+$') and tonumber(part)
        if not size or size == 0 then
          return nil, ('%s=%s: one to three whole numbers from 1 up'):format(name, value)
        end
        table.insert(sizes, size)
      end
      if #sizes > 3 then
        return nil, ('%s=%s: one to three whole numbers from 1 up'):format(name, value)
      end
      launch[name] = sizes
    else
      if not value:match('^-?%d+$') then
        return nil, ('%s=%s: a whole number'):format(name, value)
      end
      if name == 'dynamic_shared' then
        launch.dynamic_shared_bytes = tonumber(value)
      else
        launch.args = launch.args or {}
        launch.args[name] = tonumber(value)
      end
    end
  end
  return launch
end

---@param kernel table result of `warplens.estimate`
local function describe_launch(kernel)
  local words = {}
  for _, key in ipairs({ 'block', 'grid' }) do
    local sizes = vim.tbl_get(kernel, 'launch', key)
    if type(sizes) == 'table' then
      while #sizes > 1 and sizes[#sizes] == 1 do
        table.remove(sizes)
      end
      table.insert(words, key .. '=' .. table.concat(sizes, ','))
    end
  end
  return table.concat(words, ' ')
end

---@param bufnr integer
---@param kernel string
---@param launch warplens.Launch
local function set_launch(bufnr, kernel, launch)
  local argument = vim.tbl_extend('force', launch, { uri = uri(bufnr), kernel = kernel })
  warplens.execute(bufnr, 'warplens.setLaunch', argument, function(_, client)
    warplens.refresh_lenses(client.id)
  end)
end

--- Shows a kernel under the next of the launches that the source has of it.
---@param bufnr integer
---@param kernel string
local function next_launch(bufnr, kernel)
  local argument = { uri = uri(bufnr), kernel = kernel }
  warplens.execute(bufnr, 'warplens.nextLaunch', argument, function(shown, client)
    warplens.refresh_lenses(client.id)
    local which = shown.of > 1 and ('launch %d of %d: %s'):format(shown.number, shown.of, shown.launch)
      or 'only one launch was found'
    vim.api.nvim_echo({ { ('warplens: %s: %s'):format(kernel, which) } }, false, {})
  end)
end

subcommands.pin = {
  lens = 'warplens.pin',
  run = function(arguments, bufnr)
    kernel_here(bufnr, arguments[1], function(kernel)
      local argument = { uri = uri(bufnr), kernel = kernel.kernel }
      warplens.execute(bufnr, 'warplens.pin', argument, function(done, client)
        warplens.refresh_lenses(client.id)
        local what = done.pinned and 'pinned at ' .. done.time or 'unpinned'
        vim.api.nvim_echo({ { ('warplens: %s: %s'):format(kernel.kernel, what) } }, false, {})
      end)
    end)
  end,
}

subcommands.panel = {
  run = function(arguments, bufnr)
    kernel_here(bufnr, arguments[1], function(kernel)
      require('warplens.panel').open(bufnr, kernel.kernel)
    end)
  end,
  complete = kernel_names,
}

subcommands.kernels = {
  run = function(arguments, bufnr)
    require('warplens.kernels').pick(bufnr, arguments[1])
  end,
}

subcommands.fixes = {
  run = function(_, bufnr)
    require('warplens.kernels').fixes(bufnr)
  end,
}

--- Sets the arguments that programs beside a buffer's file are run with; without any, the run is again what the files say.
subcommands.run = {
  run = function(arguments, bufnr)
    local words = table.concat(arguments, ' ')
    local argument = { uri = uri(bufnr), arguments = words ~= '' and words or nil }
    warplens.execute(bufnr, 'warplens.setRun', argument, function(_, client)
      warplens.refresh_lenses(client.id)
    end)
  end,
}

subcommands.launch = {
  lens = 'warplens.setLaunch',
  run = function(arguments, bufnr)
    if arguments[1] == 'next' then
      local name = arguments[2] and (arguments[2]:match('^kernel=(.+)$') or arguments[2])
      if name then
        return next_launch(bufnr, name)
      end
      return kernel_here(bufnr, nil, function(kernel)
        next_launch(bufnr, kernel.kernel)
      end)
    end
    local reset = vim.list_contains(arguments, 'reset')
    local words = vim.tbl_filter(function(argument)
      return argument ~= 'reset'
    end, arguments)
    local launch, why = M.parse_launch(table.concat(words, ' '))
    if not launch then
      return warplens.notify(why --[[@as string]])
    end
    local given = launch.block or launch.grid or launch.dynamic_shared_bytes or launch.args
    if reset and given then
      return warplens.notify('reset takes the launch back: it goes with no sizes and values')
    elseif (reset or given) and launch.kernel then
      return set_launch(bufnr, launch.kernel, launch)
    end
    kernel_here(bufnr, launch.kernel, function(kernel)
      if reset or given then
        return set_launch(bufnr, kernel.kernel, launch)
      end
      vim.ui.input({
        prompt = ('Launch of %s: '):format(kernel.kernel),
        default = describe_launch(kernel),
      }, function(answer)
        if not answer or vim.trim(answer) == '' then
          return
        end
        local wanted, unread = M.parse_launch(answer)
        if not wanted then
          return warplens.notify(unread --[[@as string]])
        end
        set_launch(bufnr, kernel.kernel, wanted)
      end)
    end)
  end,
  complete = function(bufnr)
    local words = { 'block=', 'grid=', 'dynamic_shared=', 'next', 'reset' }
    for _, name in ipairs(kernel_names(bufnr)) do
      table.insert(words, 'kernel=' .. name)
    end
    return words
  end,
}

--- A subcommand that shows what the server answers about one kernel as Markdown.
---@param name string
---@param command string
local function shows_markdown(name, command)
  return {
    lens = command,
    run = function(arguments, bufnr)
      local function show(kernel)
        warplens.execute(bufnr, command, { uri = uri(bufnr), kernel = kernel }, function(answer)
          local text = type(answer) == 'table' and answer.markdown or answer
          view.float(name .. '/' .. kernel, type(text) == 'string' and text or view.json(text))
        end)
      end
      if arguments[1] then
        return show(arguments[1])
      end
      kernel_here(bufnr, nil, function(kernel)
        show(kernel.kernel)
      end)
    end,
    complete = kernel_names,
  }
end

subcommands.breakdown = shows_markdown('breakdown', 'warplens.breakdown')

--- With `all` on all GPUs; with `with` beside another kernel.
subcommands.compare = {
  lens = 'warplens.compareGpus',
  run = function(arguments, bufnr)
    local all, with = arguments[1] == 'all', arguments[1] == 'with'
    local function show(kernel)
      if with then
        return require('warplens.kernels').compare(bufnr, kernel)
      end
      local argument = { uri = uri(bufnr), kernel = kernel, all = all }
      warplens.execute(bufnr, 'warplens.compareGpus', argument, function(answer)
        view.float('compare/' .. kernel, answer.markdown)
      end)
    end
    local name = arguments[(all or with) and 2 or 1]
    if name then
      return show(name)
    end
    kernel_here(bufnr, nil, function(kernel)
      show(kernel.kernel)
    end)
  end,
  complete = function(bufnr)
    return vim.list_extend({ 'all', 'with' }, kernel_names(bufnr))
  end,
}

--- Lists what the kernel is predicted to gain, the most first; an edit that is chosen is made, what else is chosen is shown.
---@param bufnr integer
---@param kernel string
local function help(bufnr, kernel)
  local argument = { uri = uri(bufnr), kernel = kernel }
  warplens.execute(bufnr, 'warplens.whatWouldHelp', argument, function(answer, client)
    local entries = answer.entries
    if #entries == 0 then
      return warplens.notify(('%s: nothing is predicted to help'):format(kernel))
    end
    vim.ui.select(entries, {
      prompt = 'What would help ' .. kernel,
      kind = 'warplens.help',
      format_item = function(entry)
        return (entry.edit and '* ' or '  ') .. entry.title
      end,
    }, function(entry)
      if entry and entry.edit then
        vim.lsp.util.apply_workspace_edit(entry.edit, client.offset_encoding)
      elseif entry and type(entry.range) == 'table' then
        local place = { uri = argument.uri, range = entry.range }
        vim.lsp.util.show_document(place, client.offset_encoding, { focus = true })
      elseif entry then
        -- A cause without a place: the page says where it comes from.
        M.run({ 'breakdown', kernel }, bufnr)
      end
    end)
  end)
end

subcommands.help = {
  lens = 'warplens.whatWouldHelp',
  run = function(arguments, bufnr)
    if arguments[1] then
      return help(bufnr, arguments[1])
    end
    kernel_here(bufnr, nil, function(kernel)
      help(bufnr, kernel.kernel)
    end)
  end,
  complete = kernel_names,
}

subcommands.estimate = {
  lens = 'warplens.estimate',
  run = function(arguments, bufnr)
    local argument = { uri = uri(bufnr), kernel = arguments[1] }
    warplens.execute(bufnr, 'warplens.estimate', argument, function(answer)
      local name = arguments[1] or vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
      view.open('estimate/' .. name, 'json', view.json(answer))
    end)
  end,
  complete = kernel_names,
}

--- Writes a page of the server into the cache and opens it with what the system opens such files with.
---@param file string its name
---@param text string
---@param what string how messages call it
local function open_outside(file, text, what)
  local folder = vim.fs.joinpath(vim.fn.stdpath('cache'), 'warplens')
  local path = vim.fs.joinpath(folder, file)
  vim.fn.mkdir(folder, 'p')
  local page, why = io.open(path, 'w')
  if not page then
    return warplens.notify(why or ('cannot write ' .. path))
  end
  page:write(text)
  page:close()
  local _, unopened = vim.ui.open(path)
  warplens.notify(
    unopened and ('the ' .. what .. ' is in ' .. path) or ('opened ' .. path),
    vim.log.levels.INFO
  )
end

--- The text of a line of a file, without indentation: as the editor has it, else as it is on disk.
---@param bufnr integer the buffer that a report is about
local function source_of(bufnr)
  local own = vim.fs.normalize(vim.api.nvim_buf_get_name(bufnr))
  local texts = {} ---@type table<string, string[]>
  return function(file, line)
    file = vim.fs.normalize(file)
    if not texts[file] then
      local open = file == own and bufnr or vim.fn.bufnr(file)
      if open ~= -1 and vim.api.nvim_buf_is_loaded(open) then
        texts[file] = vim.api.nvim_buf_get_lines(open, 0, -1, false)
      else
        local read, lines = pcall(vim.fn.readfile, file)
        texts[file] = read and lines or {}
      end
    end
    local text = texts[file][line]
    return text and vim.trim(text)
  end
end

subcommands.report = {
  lens = 'warplens.report',
  run = function(arguments, bufnr)
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    if arguments[1] == 'html' then
      return warplens.execute(bufnr, 'warplens.report', { uri = uri(bufnr) }, function(answer)
        open_outside(name .. '.html', answer.html, 'report')
      end)
    end
    warplens.execute(bufnr, 'warplens.estimate', { uri = uri(bufnr) }, function(answer)
      view.float('report/' .. name, require('warplens.report').text(answer, name, source_of(bufnr)))
    end)
  end,
  complete = function()
    return { 'html' }
  end,
}

subcommands.program = {
  lens = 'warplens.program',
  run = function(_, bufnr)
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    warplens.execute(bufnr, 'warplens.program', { uri = uri(bufnr) }, function(answer)
      open_outside(name .. '.program.html', answer.html, 'account')
    end)
  end,
}

subcommands.lanes = {
  run = function(_, bufnr)
    local window, client = vim.fn.bufwinid(bufnr), warplens.client(bufnr)
    if window == -1 or not client then
      return warplens.notify('the lanes are those of the access under the cursor')
    end
    local at = vim.lsp.util.make_position_params(window, client.offset_encoding)
    local argument = { uri = uri(bufnr), position = at.position }
    warplens.execute(bufnr, 'warplens.lanes', argument, function(answer)
      if type(answer.text) ~= 'string' then
        return warplens.notify('the server is older than the plugin: it draws no lanes in characters')
      end
      view.float(('lanes/%d'):format(at.position.line + 1), answer.text)
    end)
  end,
}

subcommands.graph = {
  lens = 'warplens.graph',
  run = function(arguments, bufnr)
    local function show(kernel)
      local argument = { uri = uri(bufnr), kernel = kernel }
      warplens.execute(bufnr, 'warplens.graph', argument, function(answer)
        open_outside(kernel .. '.svg', answer.svg, 'graph')
      end)
    end
    if arguments[1] then
      return show(arguments[1])
    end
    kernel_here(bufnr, nil, function(kernel)
      show(kernel.kernel)
    end)
  end,
  complete = kernel_names,
}

--- A subcommand that switches something on and off in a buffer.
---@param name string
---@param shown fun(bufnr: integer): boolean
---@param show fun(bufnr: integer, on: boolean)
local function switches(name, shown, show)
  return {
    run = function(arguments, bufnr)
      local wish = arguments[1]
      if wish and wish ~= 'on' and wish ~= 'off' then
        return warplens.notify(name .. ' takes on, off or nothing')
      end
      show(bufnr, wish == 'on' or (wish == nil and not shown(bufnr)))
    end,
    complete = function()
      return { 'on', 'off' }
    end,
  }
end

subcommands.hints = switches('hints', warplens.shown, warplens.show)
subcommands.heat = switches('heat', function(bufnr)
  return require('warplens.heat').shown(bufnr)
end, function(bufnr, on)
  require('warplens.heat').show(bufnr, on)
end)
subcommands.lines = switches('lines', function(bufnr)
  return require('warplens.lines').shown(bufnr)
end, function(bufnr, on)
  require('warplens.lines').show(bufnr, on)
end)

subcommands.findings = {
  run = function(_, bufnr)
    require('warplens.findings').list(bufnr)
  end,
}

--- The rule of a warplens diagnostic on the cursor's line, the one under the cursor first.
---@param bufnr integer
local function rule_here(bufnr)
  local window = vim.fn.bufwinid(bufnr)
  if window == -1 then
    return nil
  end
  local line, column = unpack(vim.api.nvim_win_get_cursor(window))
  local rule
  for _, found in ipairs(vim.diagnostic.get(bufnr, { lnum = line - 1 })) do
    if found.source == 'warplens' and type(found.code) == 'string' then
      local under = found.col <= column and column < (found.end_col or found.col + 1)
      rule = under and found.code or rule or found.code
      if under then
        break
      end
    end
  end
  return rule
end

subcommands.explain = {
  run = function(arguments, bufnr)
    local rule = arguments[1] or rule_here(bufnr)
    local output, why = ask_program(bufnr, { 'explain', rule })
    if not output then
      return warplens.notify(why ~= '' and why or 'the program gave no explanation')
    end
    if rule then
      view.float('explain/' .. rule, output)
    else
      view.open('explain/rules', '', output)
    end
  end,
  complete = rules,
}

subcommands.log = {
  run = function(_, bufnr)
    local client = warplens.client(bufnr)
    local cmd = client and client.config.cmd
    local path = vim.lsp.log.get_filename()
    for i, argument in ipairs(type(cmd) == 'table' and cmd or {}) do
      if argument == '--log' and cmd[i + 1] then
        path = vim.fn.expand(cmd[i + 1])
      end
    end
    vim.cmd.tabedit(vim.fn.fnameescape(path))
    vim.cmd.normal({ 'G', bang = true })
  end,
}

--- The names that scripts and VS Code use.
local aliases = {
  selectGpu = 'gpu',
  setLaunch = 'launch',
  setRun = 'run',
  nextLaunch = 'launch',
  compareGpus = 'compare',
  tryLaunch = 'panel',
  whatWouldHelp = 'help',
}

---@return string[]
local function names()
  local list = vim.tbl_keys(subcommands)
  table.sort(list)
  return list
end

--- Runs `:Warplens …`.
---@param arguments string[]
---@param bufnr integer
function M.run(arguments, bufnr)
  local name = arguments[1]
  if not name then
    return vim.ui.select(names(), { prompt = 'warplens', kind = 'warplens' }, function(choice)
      if choice then
        M.run({ choice }, bufnr)
      end
    end)
  end
  local subcommand = subcommands[aliases[name] or name]
  if not subcommand then
    return warplens.notify(('no subcommand %s; there are %s'):format(name, table.concat(names(), ', ')))
  end
  local rest = vim.list_slice(arguments, 2)
  if name == 'nextLaunch' then
    table.insert(rest, 1, 'next')
  end
  subcommand.run(rest, bufnr)
end

--- Completes `:Warplens …`.
---@param lead string
---@param line string
---@param bufnr integer
---@return string[]
function M.complete(lead, line, bufnr)
  local words = vim.split(line:gsub('^.-Warplens!?%s+', ''), '%s+')
  local choices = {}
  if #words <= 1 then
    choices = names()
  else
    local subcommand = subcommands[aliases[words[1]] or words[1]]
    -- Only a launch and a comparison take more than one argument.
    local several = subcommand == subcommands.launch or subcommand == subcommands.compare
    if subcommand and subcommand.complete and (#words == 2 or several) then
      choices = subcommand.complete(bufnr)
    end
  end
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, lead)
  end, choices)
end

--- Runs a command that a code lens or a code action names. Prompts for what the lens leaves open.
---@param command lsp.Command
---@param context lsp.HandlerContext
function M.run_lens(command, context)
  local argument = command.arguments and command.arguments[1] or {}
  local bufnr = context.bufnr
  if argument.uri then
    bufnr = vim.uri_to_bufnr(argument.uri)
  end
  if not bufnr or not warplens.client(bufnr) then
    return warplens.notify('the server is not attached to this buffer')
  end
  if command.command == 'warplens.nextLaunch' then
    return next_launch(bufnr, argument.kernel)
  end
  for name, subcommand in pairs(subcommands) do
    if subcommand.lens == command.command then
      local words = { name }
      if name == 'gpu' then
        words[2] = argument.gpu
      elseif name == 'launch' and (argument.block or argument.grid or argument.args) then
        -- The lens knows the whole launch: nothing to ask.
        return warplens.execute(bufnr, command.command, argument, function(_, client)
          warplens.refresh_lenses(client.id)
        end)
      elseif name == 'launch' then
        words = { 'panel', argument.kernel }
      else
        words[2] = argument.kernel
      end
      return M.run(words, bufnr)
    end
  end
end

return M
