-- Neovim takes a .cl file for Lisp unless its first lines hold a C comment, and does not know
-- .hip. A .cl file is OpenCL here unless its first line of substance can only be Lisp.

---@param bufnr integer
local function opencl_or_lisp(_, bufnr)
  for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, 50, false)) do
    local first = line:match('^%s*(%S)')
    if first then
      return (first == ';' or first == '(') and 'lisp' or 'opencl'
    end
  end
  return 'opencl'
end

vim.filetype.add({
  extension = {
    cl = opencl_or_lisp,
    cu = 'cuda',
    cuh = 'cuda',
    hip = 'hip',
  },
})
