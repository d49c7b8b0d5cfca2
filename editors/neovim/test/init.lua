-- What a user's init.lua would hold, with the program under test instead of the one on the PATH.
local here = vim.fs.dirname(vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, 'S').source:sub(2))))
vim.opt.runtimepath:prepend(here)
vim.opt.swapfile = false
vim.opt.termguicolors = false
vim.opt.signcolumn = 'yes'
-- Virtual text for diagnostics, so that a screenshot of plain text shows them.
vim.diagnostic.config({ virtual_text = true })

vim.lsp.config('warplens', { cmd = { vim.env.WARPLENS_BIN, 'lsp' } })
vim.lsp.enable('warplens')
vim.g.warplens_show = vim.env.WARPLENS_SHOW == '1'
