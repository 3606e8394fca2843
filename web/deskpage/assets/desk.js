// Improves the pages of the desk. Every page works without it.

// A button copies what a box shows.
for (const box of document.querySelectorAll('.copy')) {
  if (!navigator.clipboard) break
  const button = document.createElement('button')
  const words = [document.body.dataset.copy, document.body.dataset.copied]
  button.type = 'button'
  button.textContent = words[0]
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(box.querySelector('code, bdi').textContent)
    button.textContent = words[1]
    setTimeout(() => { button.textContent = words[0] }, 2000)
  })
  box.append(button)
}

// After a form was refused, the list of problems has the focus.
document.getElementById('problems')?.focus()
