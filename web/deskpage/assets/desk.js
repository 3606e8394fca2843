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

// A form is judged while it is filled in: the server draws it, and the parts that tell about it
// are taken from there.
for (const form of document.querySelectorAll('form[data-live]')) {
  let wait, asked = 0
  form.addEventListener('input', () => {
    clearTimeout(wait)
    wait = setTimeout(async () => {
      const mine = ++asked
      const body = new URLSearchParams(new FormData(form))
      body.set('do', 'look')
      const answer = await fetch(form.action, { method: 'POST', body })
      if (!answer.ok || mine !== asked) return
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      for (const part of form.querySelectorAll(`[id^="${form.dataset.live}-"]`)) {
        const other = page.getElementById(part.id)
        if (other) part.replaceChildren(...other.childNodes)
      }
    }, 400)
  })
}

// The page of a job is read again while the job is open, without losing the place.
const live = document.getElementById('live')
if (live?.dataset.live) {
  const read = async () => {
    const answer = await fetch(live.dataset.live).catch(() => null)
    if (answer?.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('live')
      if (page && !page.dataset.live) return location.replace(live.dataset.live)
      if (page) live.replaceChildren(...page.childNodes)
    }
    setTimeout(read, 1000)
  }
  setTimeout(read, 1000)
}
