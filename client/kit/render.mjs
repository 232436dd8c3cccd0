// Renders components of the kit as an app does that uses it.
import { busy } from './world.mjs';
import { connect, mock } from '@wagmi/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { TransactionProvider, TranslationProvider, chains, transports } from 'ethereum-identity-kit';
import { act, createElement as h } from 'react';
import { createRoot } from 'react-dom/client';
import { WagmiProvider, createConfig } from 'wagmi';

/**
 * render renders children with viewer connected, if there is one, and waits until everything has
 * been fetched. The result is their element; unmount ends them.
 */
export async function render(viewer, ...children) {
  const config = createConfig({
    chains,
    transports,
    connectors: viewer ? [mock({ accounts: [viewer] })] : [],
    storage: null,
    multiInjectedProviderDiscovery: false,
  });
  if (viewer) {
    await connect(config, { connector: config.connectors[0] });
  }
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: Infinity } } });
  const element = document.body.appendChild(document.createElement('div'));
  const root = createRoot(element);
  const app = h(TranslationProvider, null, h(TransactionProvider, null, ...children));
  const wagmi = { config, reconnectOnMount: false };
  await act(() => root.render(h(WagmiProvider, wagmi, h(QueryClientProvider, { client }, app))));
  await settled(client);
  const unmount = async () => {
    await act(() => root.unmount());
    element.remove();
  };
  return { element, client, unmount };
}

// A fetched list makes its rows fetch more: it is quiet when nothing has begun for some rounds.
async function settled(client) {
  for (let quiet = 0; quiet < 5; ) {
    await act(() => new Promise((done) => setTimeout(done, 10)));
    quiet = busy() || client.isFetching() ? 0 : quiet + 1;
  }
}

/** click clicks on what a selector finds, and waits as render does. */
export async function click({ element, client }, selector) {
  await act(() => element.querySelector(selector).click());
  await settled(client);
}
