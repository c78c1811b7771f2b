// Starts the page.

function showView(name) {
  document.body.dataset.view = name;
  for (const view of ['chat', 'fleet']) byId(`show-${view}`).setAttribute('aria-pressed', String(view === name));
}

byId('show-chat').addEventListener('click', () => showView('chat'));
byId('show-fleet').addEventListener('click', () => showView('fleet'));
startChat();
startFleet();
listenForKey(pollFleet);
