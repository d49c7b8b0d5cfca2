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
  local buffer = vim.api.nvim_get_current_buf()
  local fine, why = xpcall(body, function(message)
    return type(message) == 'string' and message or vim.inspect(message)
  end)
  if fine then
    passed = passed + 1
    say('ok      ' .. what)
  else
    failed = failed + 1
    say('FAILED  ' .. what .. '\n        ' .. tostring(why):gsub('\n', '\n        '))
    -- What is left open would fail the rest as well.
    vim.cmd('silent! fclose!')
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.api.nvim_set_current_buf(buffer)
    end
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

--- Fails unless the current window floats.
local function assert_floats()
  assert(vim.api.nvim_win_get_config(0).relative ~= '', 'not a floating window')
end

--- The extmarks of one of the plugin's namespaces, in the order of their lines.
---@param name string
local function marks(name)
  local namespace = assert(vim.api.nvim_get_namespaces()[name], 'no namespace ' .. name)
  return vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })
end

--- The signs of the heat map by 1-based line.
local function heat()
  local signs = {}
  for _, mark in ipairs(marks('warplens.heat')) do
    signs[mark[2] + 1] = vim.trim(mark[4].sign_text)
  end
  return signs
end

--- The virtual lines of the line under the cursor: their positions and texts.
local function breakdown_below()
  local mark = marks('warplens.lines')[1]
  if not mark then
    return nil
  end
  local text = vim.iter(mark[4].virt_lines):fold('', function(all, line)
    return all .. line[1][1] .. '\n'
  end)
  return mark[2] + 1, text
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
  assert(#hints() == 0, 'shown before they were requested')
  vim.cmd('Warplens hints on')
  local store = find('out[x * n + y] = in[y * n + x]')
  local read = find('= tile[threadIdx.x][threadIdx.y + j]')
  eventually('32 sectors on the column store, 32 passes on the column read', function()
    local sectors, passes
    for _, hint in ipairs(hints()) do
      sectors = sectors or hint.line == store and hint.text:match('32 sectors, ideal 4')
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

check('an edit while lenses are awaited is followed by lenses of the new text', function()
  local line = find('__global__ void transpose_tiled')
  local function title()
    local lens = vim.iter(lenses()):find(function(lens)
      return lens.line == line and lens.title:find('occupancy', 1, true)
    end)
    return lens and lens.title
  end
  local before = assert(title())
  local at = find('tile[32][32]', line)
  local declared = vim.api.nvim_buf_get_lines(0, at - 1, at, false)[1]
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = 0 })
  vim.api.nvim_buf_set_lines(0, at - 1, at, false, { (declared:gsub('%[32%];', '[33];')) })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = 0 })
  eventually('another time', function()
    return title() and title() ~= before
  end, lenses)
  vim.api.nvim_buf_set_lines(0, at - 1, at, false, { declared })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = 0 })
  eventually('the first time again', function()
    return title() == before
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
  local all = { 'gpu', 'launch', 'report', 'explain', 'compare', 'hints', 'heat', 'lines', 'findings', 'breakdown' }
  vim.list_extend(all, { 'help', 'estimate', 'graph', 'lanes', 'log', 'program', 'panel', 'kernels', 'fixes' })
  for _, name in ipairs(all) do
    completes('Warplens ', name)
  end
  completes('Warplens heat ', 'off')
  completes('Warplens compare ', 'transpose_naive')
  completes('Warplens compare with ', 'transpose_naive')
  completes('Warplens gpu de', 'detect')
  completes('Warplens gpu h100', 'h100-sxm5')
  completes('Warplens estimate trans', 'transpose_tiled')
  completes('Warplens launch block=8 kernel=', 'kernel=transpose_naive')
  completes('Warplens explain smem', 'smem/bank-conflict')
end)

check('a warplens.toml takes effect when it is written, and its mistakes are shown in it', function()
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
  require('warplens').refresh_lenses(client().id)
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
      if hint.line == store and hint.text:match('16 sectors, ideal 4') then
        return true
      end
    end
  end, hints)
  vim.cmd('Warplens launch reset')
  eventually('32 sectors again', function()
    for _, hint in ipairs(hints()) do
      if hint.line == store and hint.text:match('32 sectors, ideal 4') then
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

check(':Warplens run sets the arguments of the program, and takes them back', function()
  local folder = project .. '/runs'
  vim.fn.mkdir(folder, 'p')
  local file = folder .. '/scale.cu'
  vim.fn.writefile({
    '__global__ void scale(float *out, int n) {',
    '  int i = blockIdx.x * blockDim.x + threadIdx.x;',
    '  if (i < n) out[i] *= 2;',
    '}',
    'int main(int argc, char **argv) {',
    '  int n = atoi(argv[1]);',
    '  float *out;',
    '  cudaMalloc(&out, n * 4);',
    '  scale<<<(n + 255) / 256, 256>>>(out, n);',
    '}',
  }, file)
  vim.cmd.edit(file)
  eventually('a client', client)
  vim.cmd('Warplens hints on')
  local function formula()
    return lens_text():find('×', 1, true)
  end
  eventually('a time by n', formula, lenses)
  vim.cmd('Warplens run 16777216')
  eventually('a time', function()
    return lens_text():find('µs', 1, true) and not formula()
  end, lenses)
  vim.cmd('Warplens run')
  eventually('a time by n again', formula, lenses)
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
      if entry.edit and entry.title:find('Pad `tile`', 1, true) then
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
  assert_floats()
  vim.cmd.normal('q')
end)

check(':Warplens compare shows the kernel at the cursor on other GPUs', function()
  vim.cmd('Warplens compare')
  eventually('a window with Markdown', function()
    return vim.bo.filetype == 'markdown'
  end)
  local text = buffer_text()
  assert(text:find('transpose_tiled', 1, true) and text:find('h100-sxm5', 1, true), text)
  assert_floats()
  vim.cmd.normal('q')
end)

check(':Warplens report shows all kernels of the file as text, in a floating window', function()
  vim.cmd('Warplens report')
  eventually('a window with Markdown', function()
    return vim.bo.filetype == 'markdown'
  end)
  assert_floats()
  local text = buffer_text()
  local columns = vim.o.columns
  for _, part in ipairs({
    '## transpose_naive, line 7',
    '## transpose_padded',
    'a100%-sxm4%-40gb',
    'bound by shared memory',
    -- The hottest line of the naive kernel, with its source.
    '%d+ %%  if %(x < n && y < n%) out%[x %* n %+ y%]',
    'uncoalesced +%d%.%d+x faster',
    'mwp%-cwp',
  }) do
    assert(text:find(part), part .. ' is not in\n' .. text)
  end
  -- The bars of a kernel's parts are as long as their shares: 24 columns are all of it.
  local bar, share = text:match('memory bandwidth +([^%s%d]+) +(%d+) %%')
  assert(math.abs(vim.fn.strdisplaywidth(bar) / 24 - share / 100) <= 1 / 24, bar .. share)
  local width = vim.api.nvim_win_get_width(0)
  assert(width <= columns - 2, 'wider than the editor')
  -- The window follows the editor's size.
  vim.o.columns = 60
  eventually('a narrower window', function()
    return vim.api.nvim_win_get_width(0) <= 58
  end)
  vim.o.columns = columns
  vim.cmd.normal('q')
  assert(vim.bo.filetype == 'cuda', 'q did not close it')
end)

check(':Warplens lanes draws the banks and the pieces of memory of the access under the cursor', function()
  local function lanes_of(code)
    vim.cmd('keepjumps normal! gg')
    assert(vim.fn.search([[\V]] .. code) > 0, code)
    vim.cmd('Warplens lanes')
    eventually('a window with Markdown', function()
      return vim.bo.filetype == 'markdown'
    end)
    assert_floats()
    local text = buffer_text()
    vim.cmd.normal('q')
    for line in text:gmatch('[^\n]+') do
      assert(vim.fn.strdisplaywidth(line) <= 80 or vim.startswith(line, '#'), line)
    end
    return text
  end
  -- Neighbours in a row are n floats apart in the result: every lane has a piece of its own.
  local scattered = lanes_of('out[x * n + y]')
  assert(scattered:find('32 lanes touch 32 segments of 32 B', 1, true), scattered)
  assert(scattered:find('\n +0  █▌ +0\n'), scattered)
  -- A column of a tile of 32: one bank for all.
  local conflict = lanes_of('tile[threadIdx.x]')
  assert(conflict:find('bank  words', 1, true), conflict)
  assert(conflict:find('32 for 0%-31\n'), conflict)
  -- The documentation shows it as it is.
  local spec = vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2))
  local page = vim.fs.joinpath(vim.fs.dirname(spec), '../../../docs/editors/neovim.md')
  local drawn = conflict:sub(conflict:find(' +bank  words') --[[@as integer]])
  local shown = table.concat(vim.fn.readfile(page), '\n')
  assert(shown:find(vim.trim(drawn), 1, true), 'docs/editors/neovim.md shows another picture than\n' .. drawn)
end)

check(':Warplens report html opens the page with the plots', function()
  local opened
  local open = vim.ui.open
  vim.ui.open = function(path)
    opened = path
    return nil, nil
  end
  vim.cmd('Warplens report html')
  eventually('a page', function()
    return opened
  end)
  vim.ui.open = open
  local page = assert(io.open(opened)):read('*a')
  assert(opened:find('transpose.cu.html', 1, true), opened)
  assert(page:find('<!doctype html>', 1, true) or page:find('<!DOCTYPE html>', 1, true), page:sub(1, 100))
end)

check(':Warplens heat shows where the cycles go in the sign column and follows edits', function()
  vim.cmd('Warplens heat on')
  local store = find('out[x * n + y] = in[y * n + x]')
  local read = find('= tile[threadIdx.x][threadIdx.y + j]')
  eventually('both hot lines', function()
    return heat()[store] == '█' and heat()[read] == '█'
  end, heat)
  local barrier = find('__syncthreads();', store)
  assert(heat()[barrier] ~= '█', 'the barrier is as hot as the store')
  assert(heat()[1] == nil, 'a comment is hot')
  -- Where nothing is wrong any more the heat is elsewhere.
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { '// one line more', '' })
  eventually('the signs two lines below', function()
    local signs = heat()
    return signs[store + 2] == '█' and signs[read + 2] == '█' and not signs[store]
  end, heat)
  vim.cmd.undo()
  eventually('the signs where they were', function()
    local signs = heat()
    return signs[store] == '█' and not signs[store + 2]
  end, heat)
  vim.cmd('Warplens heat')
  assert(next(heat()) == nil, 'switched off, still shown')
end)

check(':Warplens lines shows the breakdown of the line under the cursor', function()
  local read = find('= tile[threadIdx.x][threadIdx.y + j]')
  vim.api.nvim_win_set_cursor(0, { read, 0 })
  vim.cmd('Warplens lines on')
  eventually('the breakdown of the column read', function()
    local line, text = breakdown_below()
    return line == read and text:find('32 passes, ideal 1', 1, true) and text:find('transpose_tiled', 1, true)
  end, breakdown_below)
  local _, text = breakdown_below()
  assert(not text:find('[|`]') and not text:find('---', 1, true), 'Markdown is left in\n' .. text)
  -- It goes with the cursor, and is not where there is nothing to say.
  local store = find('out[x * n + y] = in[y * n + x]')
  vim.api.nvim_win_set_cursor(0, { store, 0 })
  vim.cmd.doautocmd('CursorMoved')
  eventually('the breakdown of the column store', function()
    local line, below = breakdown_below()
    return line == store and below:find('32 sectors, ideal 4', 1, true)
  end, breakdown_below)
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  vim.cmd.doautocmd('CursorMoved')
  eventually('nothing below a comment', function()
    return breakdown_below() == nil
  end, breakdown_below)
  vim.api.nvim_win_set_cursor(0, { store, 0 })
  vim.cmd.doautocmd('CursorMoved')
  eventually('the breakdown again', breakdown_below)
  vim.cmd('Warplens lines off')
  assert(breakdown_below() == nil, 'switched off, still shown')
end)

check('the lines below keep the bars and asterisks of the source', function()
  local lines = require('warplens.lines').plain(
    '**5 %** of `copy`\n\n| branch | taken |\n| --- | ---: |\n| if `a \\|\\| **p` | 5 % |\n\n- `a || b`: exact\n'
  )
  local expected = { '5 % of copy', 'branch       taken', 'if a || **p  5 %', '- a || b: exact' }
  assert(vim.deep_equal(lines, expected), vim.inspect(lines))
end)

check(':Warplens findings lists what was found by what there is to gain', function()
  local source = vim.api.nvim_get_current_win()
  vim.cmd('Warplens findings')
  eventually('the quickfix window', function()
    return vim.bo.filetype == 'qf'
  end)
  local items = vim.fn.getqflist()
  vim.cmd.cclose()
  vim.api.nvim_set_current_win(source)
  assert(#items >= 2, vim.inspect(items))
  local function rule(index)
    return items[index].text:match('%[([%w/-]+)%]$')
  end
  assert(rule(1) == 'mem/column-walk' and rule(2) == 'smem/bank-conflict', vim.inspect(items))
  assert(items[2].type == 'W' and items[2].lnum == find('= tile[threadIdx.x][threadIdx.y + j]'))
  local diagnostic = warnings('smem/bank-conflict')[1]
  assert(items[2].col == diagnostic.col + 1, ('column %d, the diagnostic is at %d'):format(items[2].col, diagnostic.col))
  -- By gain, as the messages say it: `1.55x: …`.
  local last = math.huge
  for _, item in ipairs(items) do
    local gain = tonumber(item.text:match('([%d.]+)x: ')) or 1
    assert(gain <= last, vim.inspect(items))
    last = gain
  end
end)

--- Answers the next list with the first entry that `wanted` holds for; returns what was offered, once it was.
---@param wanted fun(entry: any, text: string): boolean
---@param body fun()
local function choosing(wanted, body)
  local offered
  local before = vim.ui.select
  vim.ui.select = function(entries, options, on_choice)
    local format = options.format_item or tostring
    offered = vim.tbl_map(format, entries)
    for index, entry in ipairs(entries) do
      if wanted(entry, offered[index]) then
        return on_choice(entry, index)
      end
    end
    on_choice(nil)
  end
  local fine, why = pcall(body)
  if fine then
    pcall(eventually, 'a list', function()
      return offered
    end)
  end
  vim.ui.select = before
  if not fine then
    error(why, 0)
  end
  return offered or error('no list was offered', 0)
end

--- The title of the lens with the figures of the kernel whose line this is.
local function lens_at(line)
  local here = vim.iter(lenses()):find(function(lens)
    return lens.line == line and lens.title and lens.title:find('occupancy', 1, true)
  end)
  return here and here.title
end

--- What follows an edit that a person makes: without a screen Neovim does not come to it by itself.
local function edited()
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = 0 })
end

check(':Warplens panel predicts a launch while it is typed, and writes it above the kernel', function()
  local source = vim.api.nvim_get_current_buf()
  vim.api.nvim_win_set_cursor(0, { find('= tile[threadIdx.x][threadIdx.y + j]'), 0 })
  local line = find('void transpose_tiled(const')
  vim.cmd('Warplens panel')
  local panel = eventually('a floating window with the launch', function()
    return vim.b.warplens_panel == 'transpose_tiled' and vim.api.nvim_get_current_buf()
  end)
  assert_floats()
  local first = vim.api.nvim_buf_get_lines(panel, 0, 1, false)[1]
  assert(first:match('^block=32,8 grid='), first)
  local function figures()
    return vim.api.nvim_buf_get_lines(panel, 2, 3, false)[1]
  end
  local before = figures()
  assert(before:match('^[%d.]+ %S+ · .* · occupancy %d+ %%'), before)
  -- A tile of 32 by 32 is a part of the computation: no other block is offered, and the reason is given.
  assert(buffer_text(panel):find('The threads of a block share memory', 1, true), buffer_text(panel))
  vim.api.nvim_buf_set_lines(panel, 0, 1, false, { 'block=32,8 grid=16,16 n=512' })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = panel })
  eventually('another time', function()
    return figures() ~= before and figures():match('^[%d.]+ %S+ · ')
  end, figures)
  vim.api.nvim_buf_set_lines(panel, 0, 1, false, { 'block=0' })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = panel })
  eventually('what is wrong', function()
    return figures():find('from 1 up', 1, true)
  end, figures)
  vim.api.nvim_buf_set_lines(panel, 0, 1, false, { 'block=32,8 grid=16,16 n=512' })
  vim.cmd.normal('D')
  -- Into the comment that is there, in the place of what it said.
  local directive = '// warplens: grid=(16,16) n=512 block=(32,8)'
  eventually('the directive above the kernel', function()
    return buffer_text(source):find(directive, 1, true)
  end)
  vim.cmd.normal('q')
  assert(vim.api.nvim_get_current_buf() == source, 'the panel is closed')
  edited()
  eventually('a lens under that launch', function()
    local title = lens_at(line)
    return title and title:find('→', 1, true)
  end, lenses)
  vim.cmd.undo()
  edited()
end)

check('a launch can be used, kept for the workspace, and taken back', function()
  vim.api.nvim_win_set_cursor(0, { find('= tile[threadIdx.x][threadIdx.y + j]'), 0 })
  local line = find('void transpose_tiled(const')
  local before = eventually('a lens', function()
    local title = lens_at(line)
    return title and not title:find('→', 1, true) and title
  end, lenses)
  vim.cmd('Warplens panel')
  local panel = eventually('the panel', function()
    return vim.b.warplens_panel and vim.api.nvim_get_current_buf()
  end)
  vim.api.nvim_buf_set_lines(panel, 0, 1, false, { 'block=32,8 grid=16,16 n=512' })
  vim.cmd.normal('K')
  vim.cmd.normal('q')
  eventually('another time', function()
    local title = lens_at(line)
    return title and title ~= before
  end, lenses)
  local file = vim.fs.joinpath(vim.fn.stdpath('state'), 'warplens', 'launches.json')
  local kept = vim.json.decode(table.concat(vim.fn.readfile(file), '\n'))
  local own = kept[vim.uri_from_bufnr(0)].transpose_tiled
  assert(vim.deep_equal(own, { block = { 32, 8 }, grid = { 16, 16 }, args = { n = 512 } }), vim.inspect(kept))
  -- Taken back for this session, it is set again for a buffer that the server attaches to.
  vim.cmd('Warplens launch reset')
  eventually('the time as it was', function()
    return lens_at(line) == before
  end, lenses)
  require('warplens.kept').restore(vim.api.nvim_get_current_buf())
  eventually('the kept launch', function()
    return lens_at(line) ~= before
  end, lenses)
  vim.cmd('Warplens panel')
  eventually('the panel', function()
    return vim.b.warplens_panel
  end)
  vim.cmd.normal('X')
  vim.cmd.normal('q')
  eventually('the time as it was', function()
    return lens_at(line) == before
  end, lenses)
  assert(table.concat(vim.fn.readfile(file)) == '{}', table.concat(vim.fn.readfile(file)))
end)

check(':Warplens kernels lists those of all files, the slowest first, and jumps to one', function()
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  local offered = choosing(function(kernel)
    return kernel.kernel == 'transpose_tiled'
  end, function()
    vim.cmd('Warplens kernels')
  end)
  assert(#offered >= 3 and offered[1]:find('[%d.]+ %S+s · '), vim.inspect(offered))
  eventually('the cursor on its name', function()
    local line, column = find('transpose_tiled(const')
    return vim.deep_equal(vim.api.nvim_win_get_cursor(0), { line, column })
  end)
  local filtered = choosing(function()
    return false
  end, function()
    vim.cmd('Warplens kernels naive')
  end)
  assert(#filtered == 1 and filtered[1]:find('^transpose_naive'), vim.inspect(filtered))
end)

check(':Warplens compare with puts two kernels side by side', function()
  vim.api.nvim_win_set_cursor(0, { find('= tile[threadIdx.x][threadIdx.y + j]'), 0 })
  choosing(function(kernel)
    return kernel.kernel == 'transpose_naive'
  end, function()
    vim.cmd('Warplens compare with')
  end)
  eventually('a window with Markdown', function()
    return vim.bo.filetype == 'markdown'
  end)
  local text = buffer_text()
  assert(text:find('faster than', 1, true) and text:find('transpose_naive', 1, true), text)
  vim.cmd.normal('q')
end)

check('a machine with a GPU has it proposed, when the user asks', function()
  local bin = vim.fn.tempname()
  vim.fn.mkdir(bin)
  local tool = bin .. '/nvidia-smi'
  vim.fn.writefile({ '#!/bin/sh', 'echo NVIDIA GeForce RTX 3090' }, tool)
  vim.fn.setfperm(tool, 'rwxr-xr-x')
  local path = vim.env.PATH
  vim.env.PATH = bin .. ':' .. path
  local offered = choosing(function(_, text)
    return text == 'Use rtx-3090'
  end, function()
    vim.cmd('Warplens gpu detect')
    vim.wait(5000, function()
      return lens_text():find('3090', 1, true) ~= nil
    end)
  end)
  vim.env.PATH = path
  assert(#offered == 2, vim.inspect(offered))
  assert(lens_text():find('3090', 1, true), lens_text())
  -- It is the most recent one now.
  local recent
  choosing(function(gpu, text)
    recent = recent or text
    return gpu.id == 'a100-sxm4-40gb'
  end, function()
    vim.cmd('Warplens gpu')
  end)
  assert(recent:find('^rtx%-3090'), recent)
  eventually('lenses for the first GPU', function()
    return lens_text():find('A100', 1, true)
  end, lenses)
end)

check('a newcomer opens a bad transposition, makes the best fix and sees the new time, in under a minute', function()
  local started = vim.uv.hrtime()
  local file = project .. '/newcomer.cu'
  vim.fn.writefile({
    '// warplens: block=(32,8) grid=(64,64) n=2048',
    '__global__ void transpose(float *out, const float *in, int n) {',
    '  __shared__ float tile[32][32];',
    '  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;',
    '  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];',
    '  __syncthreads();',
    '  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;',
    '  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];',
    '}',
  }, file)
  vim.cmd.edit(file)
  local found = eventually('the finding', function()
    return warnings('smem/bank-conflict')[1]
  end, function()
    return vim.diagnostic.get(0)
  end)
  local gain = tonumber(found.message:match('^([%d.]+)x: '))
  assert(gain and gain > 1.05, found.message)
  vim.cmd('Warplens hints on')
  local function milliseconds(text)
    local number, unit = text:match('^([%d.]+) (%S+)')
    return number and tonumber(number) * (unit == 'ms' and 1 or 1e-3)
  end
  local before = eventually('the time', function()
    local title = lens_at(2)
    return title and milliseconds(title)
  end, lenses)
  local best
  choosing(function(action)
    best = best or action
    return true
  end, function()
    vim.cmd('Warplens fixes')
  end)
  assert(best.rule == 'smem/bank-conflict', vim.inspect(best.title))
  eventually('the edit', function()
    return not buffer_text():find('tile[32][32]', 1, true) or buffer_text():find('^', 1, true)
  end, buffer_text)
  edited()
  local after = eventually('the new time beside the old one', function()
    local title = lens_at(2) or ''
    local _, now = title:match('^(.-) → (.+)$')
    return now and milliseconds(now)
  end, lenses)
  -- The title promised what the lens shows.
  assert(math.abs(before / after / best.gain - 1) < 0.02, ('%g → %g ms, promised %gx'):format(before, after, best.gain))
  eventually('no finding', function()
    return #warnings('smem/bank-conflict') == 0
  end)
  local seconds = (vim.uv.hrtime() - started) / 1e9
  assert(seconds < 60, ('%g s'):format(seconds))
  vim.cmd.bwipeout({ bang = true })
end)

check('an old Neovim is told what is needed', function()
  local plugin = vim.api.nvim_get_runtime_file('plugin/warplens.lua', false)[1]
  local has, loaded = vim.fn.has, vim.g.loaded_warplens
  vim.fn.has = function(what)
    return what == 'nvim-0.11' and 0 or has(what)
  end
  vim.g.loaded_warplens = nil
  local said = notices(function()
    dofile(plugin)
    vim.cmd.new()
    vim.bo.filetype = 'opencl'
    vim.cmd.bwipeout({ bang = true })
  end)
  vim.fn.has = has
  vim.g.loaded_warplens = loaded
  assert(vim.deep_equal(said, { 'warplens: needs Neovim 0.11 or newer' }), vim.inspect(said))
end)

check('the status line tells target, kernel, time and findings, and is empty elsewhere', function()
  vim.api.nvim_win_set_cursor(0, { find('= tile[threadIdx.x][threadIdx.y + j]'), 0 })
  local function line()
    return require('warplens').statusline()
  end
  eventually('the kernel at the cursor', function()
    return line():find('^a100%-sxm4%-40gb · transpose_tiled [%d.]+ µs · %d findings$')
  end, line)
  vim.cmd('Warplens gpu h100-sxm5')
  eventually('the other GPU', function()
    return line():find('h100-sxm5', 1, true)
  end, line)
  vim.cmd('Warplens gpu a100-sxm4-40gb')
  eventually('the first GPU', function()
    return line():find('a100-sxm4-40gb', 1, true)
  end, line)
  -- As 'statusline' asks for it, also of a window that is not the current one.
  local shown = vim.api.nvim_eval_statusline('%{v:lua.require("warplens").statusline(bufnr())}', { winid = 0 }).str
  assert(shown == line(), shown)
  vim.cmd.new()
  local elsewhere = line()
  vim.cmd.bwipeout()
  assert(elsewhere == '', elsewhere)
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
  require('warplens').refresh_lenses(client().id)
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

check('clangd and warplens share a buffer: one encoding, one hover window, each says its part once', function()
  local file = project .. '/beside.cu'
  vim.fn.writefile({
    '__global__ void columns(float *out, const float *in, int n) {',
    '    int i = threadIdx.x;',
    '    /* é🚀 */ out[i * n] = in[i];',
    '}',
  }, file)
  -- No CUDA toolkit: what it would define is defined here.
  vim.fn.writefile({
    'CompileFlags:',
    '  Add: [-xc++, -D__global__=, "-include", "' .. project .. '/builtin.h"]',
  }, project .. '/.clangd')
  vim.fn.writefile({ 'struct uint3 { unsigned x, y, z; };', 'extern const uint3 threadIdx;' }, project .. '/builtin.h')
  local program = assert(vim.env.WARPLENS_CLANGD, 'WARPLENS_CLANGD is not set')
  vim.lsp.config('clangd', {
    cmd = { program },
    filetypes = { 'cuda' },
    root_markers = { '.clangd' },
  })
  vim.lsp.enable('clangd')
  local said = notices(function()
    vim.cmd.edit(file)
    eventually('both clients, ready', function()
      local clients = vim.lsp.get_clients({ bufnr = 0 })
      return #clients == 2 and clients[1].initialized and clients[2].initialized
    end, function()
      return vim.tbl_map(function(one)
        return one.name
      end, vim.lsp.get_clients({ bufnr = 0 }))
    end)
    local clangd = vim.lsp.get_clients({ name = 'clangd', bufnr = 0 })[1]
    assert(clangd.offset_encoding == client().offset_encoding, clangd.offset_encoding)
    local line, column = find('out[i * n]')
    local finding = eventually('mem/strided or a walk down a column', function()
      return warnings()[1]
    end, function()
      return vim.diagnostic.get(0)
    end)
    assert(finding.lnum + 1 == line and finding.col == column, vim.inspect(finding))

    -- On `i`: clangd knows what it is, warplens what the access costs.
    vim.api.nvim_win_set_cursor(0, { line, column + #'out[' })
    local function floats()
      return vim.tbl_filter(function(window)
        return vim.api.nvim_win_get_config(window).relative ~= ''
      end, vim.api.nvim_list_wins())
    end
    local function text()
      return floats()[1] and buffer_text(vim.api.nvim_win_get_buf(floats()[1])) or ''
    end
    -- clangd answers once it has built its preamble.
    eventually('a hover with both parts', function()
      vim.lsp.buf.hover()
      return vim.wait(1000, function()
        return text():find('sectors', 1, true) and text():find('variable', 1, true)
      end, 20)
    end, text)
    assert(#floats() == 1, #floats() .. ' floating windows')
    local _, ours = text():gsub('| pattern +|', '')
    local _, theirs = text():gsub('variable', '')
    assert(ours == 1 and theirs == 1, text())
    vim.cmd('silent! fclose!')

    -- An edit behind characters that count differently reaches both.
    vim.api.nvim_buf_set_text(0, line - 1, column, line - 1, column + #'out[i * n]', { 'out[i]' })
    eventually('no finding of ours any more', function()
      return #warnings() == 0
    end, warnings)
    vim.api.nvim_buf_set_lines(0, line, line, false, { '    undeclared();' })
    local error = eventually('an error of clangd below', function()
      return vim.iter(vim.diagnostic.get(0)):find(function(found)
        return found.source == 'clang' and found.lnum == line
      end)
    end, function()
      return vim.diagnostic.get(0)
    end)
    assert(error.col == 4, vim.inspect(error))
    local report = checkhealth()
    assert(not report:find('counts columns', 1, true), report)
  end)
  assert(#said == 0, vim.inspect(said))
  local warned = vim.fn.execute('messages')
  assert(not warned:find('offset_encoding', 1, true), warned)
  vim.lsp.enable('clangd', false)
  eventually('clangd is gone', function()
    return #vim.lsp.get_clients({ name = 'clangd' }) == 0
  end)
  vim.cmd.bwipeout({ bang = true })
end)

check('a server that is killed is told in the status line, and comes back', function()
  vim.cmd.edit({ project .. '/transpose.cu', bang = true })
  eventually('a client', client)
  local function line()
    return require('warplens').statusline()
  end
  vim.cmd('Warplens heat on')
  vim.cmd('Warplens lines on')
  for _, process in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
    local information = vim.api.nvim_get_proc(process)
    if information and information.name:find('^warplens') then
      vim.uv.kill(process, 'sigkill')
    end
  end
  eventually('its end is told', function()
    return line() == 'warplens: stopped by signal 9, see :checkhealth warplens'
  end, line)
  assert(next(heat()) == nil and breakdown_below() == nil, 'figures of a server that is gone')
  vim.lsp.enable('warplens', false)
  vim.lsp.enable('warplens')
  vim.cmd.edit({ bang = true })
  eventually('figures again', function()
    return line():find('a100-sxm4-40gb', 1, true)
  end, line)
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
