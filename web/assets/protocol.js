// Offers this site to the browser as the handler of links to names. Without it the page says what
// else can be done.
if (navigator.registerProtocolHandler) {
  const offer = document.getElementById('offer')
  const said = document.getElementById('said')
  offer.hidden = false
  document.getElementById('unable').hidden = true
  for (const button of offer.querySelectorAll('button[data-protocol]')) {
    button.addEventListener('click', () => {
      try {
        navigator.registerProtocolHandler(button.dataset.protocol, location.origin + '/.urn?uri=%s')
        said.textContent = offer.dataset.asked
      } catch {
        said.textContent = offer.dataset.failed
      }
    })
  }
}
