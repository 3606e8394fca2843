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

// A form that needs a passkey asks the browser for it, and sends what the browser answers in a
// field. Where the browser knows no passkeys, or the page is at another host, the form stays hidden.
const credentials = window.PublicKeyCredential?.parseCreationOptionsFromJSON ? navigator.credentials : null
let waiting

async function ask(form, mediation) {
  const create = form.dataset.passkey === 'create'
  waiting?.abort()
  const { signal } = waiting = new AbortController()
  const options = await fetch('/.desk/passkey/options', { method: 'POST', body: new URLSearchParams({ for: form.dataset.passkey }), signal })
  if (!options.ok) return form.submit() // the answer says why, in a page
  const json = await options.json()
  const answer = create
    ? await credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(json), signal })
    : await credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(json), mediation, signal })
  form.querySelector('[name$=credential]').value = JSON.stringify(answer)
  form.submit()
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  const { rp, failed, there } = form.dataset
  if (!credentials || location.hostname !== rp && !location.hostname.endsWith('.' + rp)) continue
  form.hidden = false
  const button = form.querySelector('button')
  button.disabled = false
  const said = document.createElement('p')
  said.className = 'wrong'
  said.setAttribute('role', 'alert')
  form.append(said)
  form.addEventListener('submit', async event => {
    event.preventDefault()
    said.textContent = ''
    button.disabled = true
    try {
      await ask(form)
    } catch (problem) {
      said.textContent = problem.name === 'InvalidStateError' && there || failed
    }
    button.disabled = false
  })
  if (document.querySelector('[autocomplete~=webauthn]') && await PublicKeyCredential.isConditionalMediationAvailable?.()) {
    ask(form, 'conditional').catch(() => {}) // the button is still there
  }
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
