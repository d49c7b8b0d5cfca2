-- Gives a buffer its :Warplens command when the server attaches, and takes it away after.

if vim.g.loaded_warplens then
  return
end
vim.g.loaded_warplens = true
if vim.fn.has('nvim-0.11') == 0 then
  -- Said once, where it matters: when a kernel is opened.
  local old = vim.api.nvim_create_augroup('warplens.old', {})
  vim.api.nvim_create_autocmd('FileType', {
    group = old,
    pattern = { 'cuda', 'opencl', 'hip' },
    callback = function()
      vim.api.nvim_del_augroup_by_id(old)
      vim.notify('warplens: needs Neovim 0.11 or newer', vim.log.levels.ERROR)
    end,
  })
  return
end

local group = vim.api.nvim_create_augroup('warplens', {})

---@param client_id integer
local function is_warplens(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  return client ~= nil and client.name == 'warplens'
end

vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  callback = function(event)
    if is_warplens(event.data.client_id) then
      require('warplens').attach(event.buf)
    end
  end,
})

vim.api.nvim_create_autocmd('LspDetach', {
  group = group,
  callback = function(event)
    if is_warplens(event.data.client_id) then
      require('warplens').detach(event.buf)
    end
  end,
})

vim.api.nvim_create_autocmd('LspNotify', {
  group = group,
  callback = function(event)
    if event.data.method == 'textDocument/didChange' and is_warplens(event.data.client_id) then
      require('warplens.figures').stale(event.buf)
    end
  end,
})

-- Neovim does not watch files everywhere; what is written in it, or changed while it was in the
-- background, is told to the server.
vim.api.nvim_create_autocmd('BufWritePost', {
  group = group,
  pattern = { 'warplens.toml', 'compile_commands.json', '*.h', '*.hh', '*.hpp', '*.hxx', '*.cuh', '*.inc', '*.inl', '*.clh', '*.ipp', '*.tcc' },
  callback = function(event)
    for _, client in ipairs(vim.lsp.get_clients({ name = 'warplens' })) do
      require('warplens').file_changed(client, event.match)
    end
  end,
})
vim.api.nvim_create_autocmd('FocusGained', {
  group = group,
  callback = function()
    for _, client in ipairs(vim.lsp.get_clients({ name = 'warplens' })) do
      local file = client.root_dir and vim.fs.joinpath(client.root_dir, 'warplens.toml')
      if file and vim.uv.fs_stat(file) then
        require('warplens').file_changed(client, file)
      end
    end
  end,
})
