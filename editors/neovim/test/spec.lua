-- Drives a real Neovim against a real server, as a user would. Started by run.sh with
-- WARPLENS_PROJECT, a folder that holds copies of transpose.cu and transpose.cl, and with
-- WARPLENS_RESULTS, the file to write to (the editor itself writes to the standard streams). Each
-- check waits a bounded time for what it expects, and the rest runs on where it fails.

local project = assert(vim.env.WARPLENS_PROJECT, 'WARPLENS_PROJECT is not set')
local results = assert(io.open(assert(vim.env.WARPLENS_RESULTS, 'WARPLENS_RESULTS is not set'), 'w'))
local passed, failed = 0, 0

local function say(text)
  results:write(text, '\n')
  results:flush()
end

---@param what string
---@param body fun()
local function check(what, body)
  local fine, why = xpcall(body, function(message)
    return type(message) == 'string' and message or vim.inspect(message)
  end)
  if fine then
    passed = passed + 1
    say('ok      ' .. what)
  else
    failed = failed + 1
    say('FAILED  ' .. what .. '\n        ' .. tostring(why):gsub('\n', '\n        '))
  end
end

--- Waits until `probe` gives something true and returns it.
---@param what string
---@param probe fun(): any
---@param state? fun(): any what there was instead, for the message
local function eventually(what, probe, state)
  local got
  local met = vim.wait(10000, function()
    got = probe()
    return got and true or false
  end, 20)
  if not met then
    error(what .. (state and (', instead: ' .. vim.inspect(state())) or ''), 0)
  end
  return got
end

local function buffer_text(bufnr)
  return table.concat(vim.api.nvim_buf_get_lines(bufnr or 0, 0, -1, false), '\n')
end

--- The 1-based line that holds `text`, and the 0-based column where it starts.
local function find(text, from)
  for i, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(text, 1, true)
    if column and i >= (from or 1) then
      return i, column - 1
    end
  end
  error(('the file has no %q'):format(text), 0)
end

local function client()
  return vim.lsp.get_clients({ name = 'warplens', bufnr = 0 })[1]
end

local function hints()
  return vim.tbl_map(function(hint)
    local label = hint.inlay_hint.label
    if type(label) == 'table' then
      label = vim.iter(label):fold('', function(text, part)
        return text .. part.value
      end)
    end
    return { line = hint.inlay_hint.position.line + 1, text = label }
  end, vim.lsp.inlay_hint.get({ bufnr = 0 }))
end

local function lenses()
  return vim.tbl_map(function(lens)
    return { line = lens.range.start.line + 1, title = lens.command and lens.command.title }
  end, vim.lsp.codelens.get(0))
end

local function warnings(code)
  return vim.tbl_filter(function(found)
    return found.source == 'warplens' and (not code or found.code == code)
  end, vim.diagnostic.get(0))
end

local function lens_text()
  return vim.iter(lenses()):fold('', function(text, lens)
    return text .. (lens.title or '') .. '\n'
  end)
end

--- Collects what the plugin tells the user while `body` runs.
local function notices(body)
  local said = {}
  local before = vim.notify
  vim.notify = function(message)
    table.insert(said, message)
  end
  local fine, why = pcall(body, said)
  vim.notify = before
  if not fine then
    error(why, 0)
  end
  return said
end

--- Runs :checkhealth warplens and returns its text.
local function checkhealth()
  vim.cmd('silent checkhealth warplens')
  local text = eventually('the report is written', function()
    local now = buffer_text()
    return now:find('target', 1, true) and now
  end, buffer_text)
  vim.cmd.bwipeout()
  return text
end

vim.cmd.edit(project .. '/transpose.cu')

check('the server attaches to a CUDA file, rooted at warplens.toml', function()
  assert(vim.bo.filetype == 'cuda', 'filetype ' .. vim.bo.filetype)
  local attached = eventually('a client', client)
  eventually('initialised', function()
    return attached.initialized
  end)
  assert(vim.fs.normalize(attached.root_dir) == vim.fs.normalize(project), attached.root_dir)
end)

if not client() then
  say('nothing else can be checked; the log says:')
  local log = io.open(vim.lsp.log.get_filename())
  say(log and log:read('*a') or '(no log)')
  say(('%d passed, %d failed'):format(passed, failed + 1))
  vim.cmd('cquit 1')
end

check(':Warplens exists in this buffer and not in another', function()
  assert(vim.fn.exists(':Warplens') == 2)
  vim.cmd.new()
  local elsewhere = vim.fn.exists(':Warplens')
  vim.cmd.bwipeout()
  assert(elsewhere == 0, 'also in an empty buffer')
end)

check('the bank conflict of transpose_tiled is reported on its line', function()
  local found = eventually('smem/bank-conflict', function()
    return warnings('smem/bank-conflict')[1]
  end, function()
    return vim.diagnostic.get(0)
  end)
  assert(found.lnum + 1 == find('= tile[threadIdx.x][threadIdx.y + j]'), 'on line ' .. found.lnum + 1)
  assert(found.message:find('32', 1, true), found.message)
end)

check(':Warplens hints shows inlay hints with sectors and passes at the ends of lines', function()
  assert(#hints() == 0, 'shown before they were asked for')
  vim.cmd('Warplens hints on')
  local store = find('out[x * n + y] = in[y * n + x]')
  local read = find('= tile[threadIdx.x][threadIdx.y + j]')
  eventually('32 sectors on the column store, 32 passes on the column read', function()
    local sectors, passes
    for _, hint in ipairs(hints()) do
      sectors = sectors or hint.line == store and hint.text:match('32/4 sectors')
      passes = passes or hint.line == read and hint.text:match('32 passes')
    end
    return sectors and passes
  end, hints)
end)

check('each kernel has a code lens that names the target and the time', function()
  eventually('three lenses', function()
    local count, text = 0, lens_text()
    for _, kernel in ipairs({ 'transpose_naive', 'transpose_tiled', 'transpose_padded' }) do
      local at = find('__global__ void ' .. kernel)
      for _, lens in ipairs(lenses()) do
        if lens.line == at then
          count = count + 1
          break
        end
      end
    end
    return count == 3 and text:lower():find('a100', 1, true) and text:find('%d µs')
  end, lenses)
end)

check('hovering over the tile tells the passes', function()
  local line, column = find('= tile[threadIdx.x][threadIdx.y + j]')
  local answer = client():request_sync('textDocument/hover', {
    textDocument = vim.lsp.util.make_text_document_params(0),
    position = { line = line - 1, character = column + 3 },
  }, 10000, 0)
  local text = vim.inspect(answer)
  assert(answer and answer.result and text:find('passes', 1, true), text)

  -- And as the key does it: in a window.
  vim.api.nvim_win_set_cursor(0, { line, column + 3 })
  vim.lsp.buf.hover()
  eventually('a floating window with passes', function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        return buffer_text(vim.api.nvim_win_get_buf(window)):find('passes', 1, true)
      end
    end
  end)
  vim.cmd('silent! fclose!')
end)

check(':checkhealth warplens has no error', function()
  local text = checkhealth()
  assert(not text:find('ERROR', 1, true), text)
  assert(not text:find('WARNING', 1, true), text)
  assert(text:find('warplens %d'), text)
  assert(text:find('warplens.toml', 1, true), text)
  assert(text:find('a100-sxm4-40gb', 1, true), text)
end)

check(':checkhealth tells of a client that counts columns otherwise', function()
  local other = vim.lsp.start({
    name = 'other',
    cmd = function(dispatchers)
      local closing = false
      return {
        request = function(method, _, callback)
          if method == 'initialize' then
            local mine = client().offset_encoding
            callback(nil, { capabilities = { positionEncoding = mine == 'utf-16' and 'utf-8' or 'utf-16' } })
          else
            callback(nil, vim.NIL)
          end
          return true, 1
        end,
        notify = function(method)
          if method == 'exit' then
            dispatchers.on_exit(0, 0)
          end
          return true
        end,
        is_closing = function()
          return closing
        end,
        terminate = function()
          closing = true
        end,
      }
    end,
  }, { bufnr = 0 })
  eventually('both clients attached', function()
    return #vim.lsp.get_clients({ bufnr = 0 }) == 2
  end)
  local text = checkhealth()
  vim.lsp.buf_detach_client(0, other)
  vim.lsp.stop_client(other, true)
  assert(text:find('WARNING', 1, true) and text:find('other counts columns', 1, true), text)
end)

check(':Warplens completes subcommands, GPUs, kernels and rules', function()
  local function completes(line, want)
    local got = vim.fn.getcompletion(line, 'cmdline')
    assert(vim.list_contains(got, want), ('%q gives %s'):format(line, vim.inspect(got)))
  end
  for _, name in ipairs({ 'gpu', 'launch', 'hints', 'explain', 'breakdown', 'estimate', 'log' }) do
    completes('Warplens ', name)
  end
  completes('Warplens gpu h100', 'h100-sxm5')
  completes('Warplens estimate trans', 'transpose_tiled')
  completes('Warplens launch block=8 kernel=', 'kernel=transpose_naive')
  completes('Warplens explain smem', 'smem/bank-conflict')
end)

check('a warplens.toml takes effect when it is written, and its mistakes stand in it', function()
  local source = vim.api.nvim_get_current_buf()
  local function write(line)
    vim.cmd.edit(project .. '/warplens.toml')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { line })
    vim.cmd('silent write')
    local toml = vim.api.nvim_get_current_buf()
    vim.api.nvim_set_current_buf(source)
    return toml
  end
  local function lenses_for(name)
    return function()
      return lens_text():lower():find(name, 1, true)
    end
  end
  write('gpu = "h100-sxm5"')
  eventually('lenses for the H100', lenses_for('h100'), lenses)
  local toml = write('gpu = "no-such-gpu"')
  local found = eventually('a diagnostic in warplens.toml', function()
    return vim.diagnostic.get(toml)[1]
  end)
  assert(found.lnum == 0 and found.message:find('no-such-gpu', 1, true), vim.inspect(found))
  assert(checkhealth():find('no-such-gpu', 1, true), 'the health check does not tell')
  write('gpu = "a100-sxm4-40gb"')
  eventually('lenses for the A100 again', lenses_for('a100'), lenses)
  eventually('no diagnostic in warplens.toml', function()
    return #vim.diagnostic.get(toml) == 0
  end)
end)

check(':Warplens gpu changes the target of lenses and hints', function()
  vim.cmd('Warplens gpu h100-sxm5')
  eventually('lenses for the H100 and none for the A100', function()
    local text = lens_text():lower()
    return text:find('h100', 1, true) and not text:find('a100', 1, true)
  end, lenses)
end)

check(':Warplens gpu with an unknown id says so and changes nothing', function()
  local said = notices(function(said)
    vim.cmd('Warplens gpu no-such-gpu')
    eventually('a message', function()
      return said[1]
    end)
  end)
  assert(said[1]:find('no-such-gpu', 1, true), said[1])
  vim.lsp.codelens.refresh({ bufnr = 0 })
  vim.wait(300)
  assert(lens_text():lower():find('h100', 1, true), lens_text())
end)

check(':Warplens gpu without an id offers the profiles', function()
  local offered
  local before = vim.ui.select
  vim.ui.select = function(items, options, on_choice)
    offered = vim.tbl_map(options.format_item, items)
    for _, gpu in ipairs(items) do
      if gpu.id == 'a100-sxm4-40gb' then
        return on_choice(gpu)
      end
    end
  end
  vim.cmd('Warplens gpu')
  vim.ui.select = before
  assert(offered and #offered >= 10, vim.inspect(offered))
  eventually('lenses for the chosen one', function()
    return lens_text():lower():find('a100', 1, true)
  end, lenses)
end)

check(':Warplens launch sets the launch of the kernel at the cursor', function()
  vim.api.nvim_win_set_cursor(0, { find('out[x * n + y] = in[y * n + x]'), 0 })
  vim.cmd('Warplens launch block=16,16 grid=64,64 n=1024')
  -- A warp is two rows of 16 now: 16 sectors hold its 32 column elements.
  local store = find('out[x * n + y] = in[y * n + x]')
  eventually('16 sectors on the column store', function()
    for _, hint in ipairs(hints()) do
      if hint.line == store and hint.text:match('16/4 sectors') then
        return true
      end
    end
  end, hints)
  vim.cmd('Warplens launch reset')
  eventually('32 sectors again', function()
    for _, hint in ipairs(hints()) do
      if hint.line == store and hint.text:match('32/4 sectors') then
        return true
      end
    end
  end, hints)
end)

check(':Warplens launch next shows the launches of a kernel one after the other', function()
  local file = project .. '/fill.cu'
  vim.fn.writefile({
    '__global__ void fill(float *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }',
    'void host(float *out) {',
    '    fill<<<64, 256>>>(out);',
    '    fill<<<8, 32>>>(out);',
    '}',
  }, file)
  vim.cmd.edit(file)
  eventually('a client', client)
  vim.cmd('Warplens hints on')
  local function shows(text)
    return function()
      return lens_text():find(text, 1, true)
    end
  end
  eventually('the first launch', shows('launch 1 of 2: <<<64, 256>>>'), lenses)
  vim.cmd('Warplens launch next')
  eventually('the second launch', shows('launch 2 of 2: <<<8, 32>>>'), lenses)
  vim.cmd('Warplens nextLaunch')
  eventually('the first launch again', shows('launch 1 of 2: <<<64, 256>>>'), lenses)
  vim.cmd.bwipeout({ bang = true })
end)

check(':Warplens help makes the action that is chosen', function()
  local file = project .. '/columns.cu'
  vim.fn.writefile({
    '// warplens: block=(32,8) grid=(64,64) n=2048',
    '__global__ void columns(const float *in, float *out, int n) {',
    '  __shared__ float tile[32][32];',
    '  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;',
    '  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];',
    '  __syncthreads();',
    '  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];',
    '}',
  }, file)
  vim.cmd.edit(file)
  eventually('a client', client)
  local select, offered = vim.ui.select, nil
  vim.ui.select = function(entries, options, on_choice)
    offered = vim.tbl_map(options.format_item, entries)
    for _, entry in ipairs(entries) do
      if entry.edit and entry.text:find('Pad `tile`', 1, true) then
        return on_choice(entry)
      end
    end
    on_choice(nil)
  end
  vim.cmd('Warplens help columns')
  eventually('the tile is padded', function()
    return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'):find('tile%[32%]%[33%]')
  end, function()
    return offered
  end)
  vim.ui.select = select
  vim.cmd.bwipeout({ bang = true })
end)

check('what is typed in a header reaches the kernels that include it', function()
  vim.fn.writefile({ '#define STRIDE 1' }, project .. '/stride.h')
  local file = project .. '/uses.cu'
  vim.fn.writefile({
    '#include "stride.h"',
    '__global__ void uses(float *out, const float *in) {',
    '    int i = blockIdx.x * blockDim.x + threadIdx.x;',
    '    out[i] = in[STRIDE * i];',
    '}',
  }, file)
  vim.cmd.edit(file)
  eventually('a client', client)
  local source = vim.api.nvim_get_current_buf()
  vim.cmd.edit(project .. '/stride.h')
  eventually('a client in the header', client)
  local header = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_lines(header, 0, -1, false, { '#define STRIDE 32' })
  eventually('mem/strided in the kernel', function()
    return vim.iter(vim.diagnostic.get(source)):find(function(found)
      return found.code == 'mem/strided'
    end)
  end, function()
    return vim.diagnostic.get(source)
  end)
  vim.cmd.bwipeout({ header, bang = true })
  vim.cmd.bwipeout({ source, bang = true })
end)

check(':Warplens launch refuses what it cannot read', function()
  for _, bad in ipairs({ 'block=32,x', 'block=1,2,3,4', 'grid=0', 'n=many', '32' }) do
    local said = notices(function()
      vim.cmd('Warplens launch ' .. bad)
    end)
    assert(#said == 1, bad .. ' was accepted')
  end
end)

check(':Warplens breakdown tells where the cycles of the kernel at the cursor go', function()
  vim.api.nvim_win_set_cursor(0, { find('= tile[threadIdx.x][threadIdx.y + j]'), 0 })
  vim.cmd('Warplens breakdown')
  eventually('a window with Markdown', function()
    return vim.bo.filetype == 'markdown'
  end)
  assert(buffer_text():find('transpose_tiled', 1, true), buffer_text())
  vim.cmd.normal('q')
end)

check(':Warplens estimate opens the figures as JSON', function()
  vim.cmd('Warplens estimate transpose_tiled')
  eventually('a window with JSON', function()
    return vim.bo.filetype == 'json'
  end)
  local decoded, answer = pcall(vim.json.decode, buffer_text())
  assert(decoded and answer.schema == 'warplens.estimate/1', buffer_text():sub(1, 200))
  assert(#answer.results == 1 and answer.results[1].kernel == 'transpose_tiled')
  vim.cmd.normal('q')
  assert(vim.bo.filetype == 'cuda', 'q did not close it')
end)

check(':Warplens graph draws the work flow graph of the kernel at the cursor', function()
  vim.api.nvim_win_set_cursor(0, { find('= tile[threadIdx.x][threadIdx.y + j]'), 0 })
  local opened
  local open = vim.ui.open
  vim.ui.open = function(path)
    opened = path
    return nil, nil
  end
  vim.cmd('Warplens graph')
  eventually('a picture', function()
    return opened
  end)
  vim.ui.open = open
  local picture = assert(io.open(opened)):read('*a')
  assert(opened:find('transpose_tiled.svg', 1, true), opened)
  assert(picture:find('Work flow graph of transpose_tiled', 1, true), picture:sub(1, 300))
end)

check(':Warplens explain tells about the rule at the cursor', function()
  local line = find('= tile[threadIdx.x][threadIdx.y + j]')
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  vim.cmd('Warplens explain')
  local text = buffer_text()
  assert(text:find('bank', 1, true) and vim.bo.filetype == 'markdown', text)
  vim.cmd.normal('q')
end)

check(':Warplens log opens the log', function()
  vim.cmd('Warplens log')
  local name = vim.api.nvim_buf_get_name(0)
  vim.cmd('tabclose')
  assert(name:find('lsp.log', 1, true), name)
end)

check('an unknown subcommand is answered with the ones there are', function()
  local said = notices(function()
    vim.cmd('Warplens nonsense')
  end)
  assert(#said == 1 and said[1]:find('breakdown', 1, true), vim.inspect(said))
end)

check('the padding action widens the tile and its diagnostic goes', function()
  local line, column = find('= tile[threadIdx.x][threadIdx.y + j]')
  vim.api.nvim_win_set_cursor(0, { line, column + 3 })
  local before = #warnings('smem/bank-conflict')
  assert(before > 0, 'there is no diagnostic to cure')
  local titles = {}
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      table.insert(titles, action.title)
      return action.title:match('^Pad') ~= nil
    end,
  })
  eventually('[33] in the text', function()
    return buffer_text():find('float tile[32][33];\n\n  int x = blockIdx.x * 32 + threadIdx.x;', 1, true)
      and not buffer_text():find('tile[32][32]', 1, true)
  end, function()
    return titles
  end)
  eventually('the diagnostic is gone', function()
    return #warnings('smem/bank-conflict') == 0
  end, function()
    return warnings('smem/bank-conflict')
  end)
  eventually('the hint tells one pass, or nothing', function()
    for _, hint in ipairs(hints()) do
      if hint.text:find('32 passes', 1, true) then
        return false
      end
    end
    return true
  end, hints)
end)

check('undo brings the diagnostic back', function()
  assert(#warnings('smem/bank-conflict') == 0, 'nothing was cured')
  vim.cmd.undo()
  assert(buffer_text():find('tile[32][32]', 1, true), 'undo did not restore the text')
  eventually('smem/bank-conflict', function()
    return #warnings('smem/bank-conflict') > 0
  end)
end)

check('running the lens of a kernel opens its breakdown', function()
  local line = find('__global__ void transpose_tiled')
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  vim.lsp.codelens.refresh({ bufnr = 0 })
  eventually('a lens on this line', function()
    return vim.iter(lenses()):any(function(lens)
      return lens.line == line
    end)
  end)
  -- There is another lens beside it, which asks what would help: the one with the figures is taken.
  local select = vim.ui.select
  vim.ui.select = function(entries, options, on_choice)
    for index, entry in ipairs(entries) do
      if options.format_item(entry):find('occupancy', 1, true) then
        return on_choice(entry, index)
      end
    end
    on_choice(nil, nil)
  end
  local said = notices(function(said)
    vim.lsp.codelens.run()
    vim.wait(5000, function()
      return #said > 0 or vim.bo.filetype == 'markdown'
    end)
  end)
  vim.ui.select = select
  assert(#said == 0, vim.inspect(said))
  assert(vim.bo.filetype == 'markdown', 'no window opened')
  assert(buffer_text():find('transpose_tiled', 1, true), buffer_text())
  vim.cmd.normal('q')
  assert(vim.bo.filetype == 'cuda', 'q did not close it')
end)

check(':Warplens hints off hides hints and lenses', function()
  vim.cmd('Warplens hints off')
  eventually('nothing shown', function()
    return #hints() == 0 and #lenses() == 0
  end)
end)

check('an OpenCL file attaches to the same server and is analysed', function()
  local first = client().id
  vim.cmd.edit({ project .. '/transpose.cl', bang = true })
  assert(vim.bo.filetype == 'opencl', 'filetype ' .. vim.bo.filetype)
  eventually('a client', client)
  assert(client().id == first, 'a second server was started')
  eventually('smem/bank-conflict', function()
    return warnings('smem/bank-conflict')[1]
  end, function()
    return vim.diagnostic.get(0)
  end)
end)

check('Lisp stays Lisp, HIP and CUDA headers are known, C++ is left alone', function()
  local function filetype(name, text)
    local path = project .. '/' .. name
    vim.fn.writefile({ text }, path)
    vim.cmd.edit(path)
    local is = vim.bo.filetype
    local attached = vim.wait(500, function()
      return client() ~= nil
    end, 20)
    vim.cmd.bwipeout({ bang = true })
    return is, attached
  end
  assert(filetype('list.cl', '(defun f (x) x)') == 'lisp')
  assert(filetype('bare.cl', 'kernel void f(global float *a) { a[0] = 0; }') == 'opencl')
  assert(filetype('head.cuh', '#pragma once') == 'cuda')
  local hip, hip_attached = filetype('k.hip', '__global__ void f(float *a) { a[0] = 0; }')
  assert(hip == 'hip' and hip_attached, hip)
  local cpp, cpp_attached = filetype('main.cpp', 'int main() {}')
  assert(cpp == 'cpp' and not cpp_attached)
  local host, host_attached = filetype('host.cpp', 'const char *k = "__kernel void f(__global float *a) {}";')
  assert(host == 'cpp' and host_attached, 'host code with a kernel')
end)

check('the server ends with the editor', function()
  local attached = vim.lsp.get_clients({ name = 'warplens' })[1]
  assert(attached, 'no client is left')
  vim.lsp.enable('warplens', false)
  eventually('stopped', function()
    return #vim.lsp.get_clients({ name = 'warplens' }) == 0
  end)
  assert(vim.fn.exists(':Warplens') == 0, ':Warplens is still there')
end)

say(('%d passed, %d failed'):format(passed, failed))
vim.cmd(failed == 0 and 'qall!' or 'cquit 1')
