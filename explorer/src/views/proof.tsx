// What this browser has checked, by which keys, and what nobody has checked.

import { useState } from 'preact/hooks';
import { claimed, use, type Standing } from '../data/proof';
import { base, seal } from '../data/site';
import { proofTexts } from '../texts/later';
import { named, plain, type Text } from '../text';
import { date, number, sentences } from '../texts/first';
import { Address } from '../ui/copy';
import { Heading } from '../ui/heading';
import { useLoad } from '../ui/load';
import { chainsOf, moodOf, said, useStanding } from '../ui/seal';

export function ProofView() {
  const now = useStanding();
  return (
    <div class="stack sections">
      <Heading title={proofTexts.title} />
      <p class="text quiet">{proofTexts.about}</p>
      <p class={`notice ${moodOf(now)}`} role="status">
        {said(now)}
      </p>
      {now.state === 'none' && <Claimed />}
      {now.refused.length > 0 && <Refused keys={now.refused} />}
      {seal.proof && <Signed now={now} />}
      <Keys now={now} />
      <Limits />
      <Commands />
    </div>
  );
}

/**
 * Of a site that is not checked: whether there is anything to check. A site that names no keys is hardly ever signed, and to
 * ask for what is not there is an error on the console.
 */
function Claimed() {
  const [asked, ask] = useState(seal.named.length > 0);
  return asked ? (
    <Claim />
  ) : (
    <p>
      <button type="button" onClick={() => ask(true)}>
        {proofTexts.look}
      </button>
    </p>
  );
}

function Claim() {
  const origin = useLoad(claimed, []);
  return origin.state === 'done' ? <p>{origin.value === null ? proofTexts.claimsNothing : proofTexts.claims(named(origin.value))}</p> : null;
}

const most = 20;

function Refused({ keys }: { keys: readonly string[] }) {
  return (
    <section aria-labelledby="refused">
      <h2 id="refused">{proofTexts.refused}</h2>
      <ul>
        {keys.slice(0, most).map((key) => (
          <li key={key}>
            <code>{plain(key)}</code>
          </li>
        ))}
      </ul>
      {keys.length > most && <p>{proofTexts.more(number(keys.length - most))}</p>}
    </section>
  );
}

const text = (value: unknown): Text => plain(typeof value === 'string' ? value : '');

function Signed({ now }: { now: Standing }) {
  const { proof } = seal;
  if (!proof) {
    return null;
  }
  const { root } = proof;
  const inputs = root['inputs'] as { generator?: unknown } | undefined;
  const chains = chainsOf(root);
  const facts: [name: Text, value: Text, isCode?: boolean][] = [
    [proofTexts.facts.origin, named(proof.origin)],
    [proofTexts.facts.counter, number(proof.counter)],
    [proofTexts.facts.asOf, proofTexts.time(date(proof.asOf), text(proof.asOf))],
    [proofTexts.facts.digest, text(proof.digest), true],
    [proofTexts.facts.generator, text(inputs?.generator)],
    [proofTexts.facts.objects, number(now.right)],
  ];
  return (
    <section aria-labelledby="signed">
      <h2 id="signed">{proofTexts.signed}</h2>
      <dl class="texts">
        {facts.map(([name, value, isCode]) =>
          value ? (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{isCode ? <code>{value}</code> : value}</dd>
            </div>
          ) : null,
        )}
      </dl>
      <h3>{proofTexts.chains}</h3>
      {chains.length === 0 ? (
        <p class="quiet">{proofTexts.noChains}</p>
      ) : (
        <div class="scroll reports" tabIndex={0} role="region" aria-label={proofTexts.chains}>
          <table>
            <thead>
              <tr>
                <th scope="col" class="num">
                  {proofTexts.chain}
                </th>
                <th scope="col" class="num">
                  {proofTexts.block}
                </th>
                <th scope="col">{proofTexts.hash}</th>
              </tr>
            </thead>
            <tbody>
              {chains.map(({ chain_id, block, hash }) => (
                <tr key={chain_id}>
                  <td class="num">{plain(String(chain_id))}</td>
                  <td class="num">{number(block)}</td>
                  <td>{hash ? <code>{plain(hash)}</code> : proofTexts.noHash}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function List({ keys }: { keys: readonly string[] }) {
  return (
    <ul>
      {keys.map((key) => (
        <li key={key}>
          <code>{plain(key)}</code>
        </li>
      ))}
    </ul>
  );
}

function Keys({ now }: { now: Standing }) {
  const { own, first, named: claims, refreshers } = seal;
  const [typed, type] = useState(own.join('\n'));
  const [others, typeOthers] = useState(refreshers.join('\n'));
  const [isWrong, wrong] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    wrong(!use(typed, others));
  };
  const site = first[0] ? first : claims;
  return (
    <section aria-labelledby="keys">
      <div>
        <h2 id="keys">{proofTexts.keys}</h2>
        <p class="text">{proofTexts.by[own[0] ? 'reader' : site[0] ? 'site' : 'nobody']}</p>
      </div>
      {!own[0] && site[0] && (
        <div>
          {now.changed && <h3>{proofTexts.kept}</h3>}
          <List keys={site} />
        </div>
      )}
      {now.changed && (
        <div>
          <h3>{proofTexts.now}</h3>
          <List keys={claims} />
          <button type="button" onClick={() => use('')}>
            {proofTexts.trust}
          </button>
        </div>
      )}
      <form class="stack" onSubmit={submit}>
        <div>
          <label for="given">{proofTexts.field}</label>
          <p id="about-given" class="quiet small">
            {proofTexts.help}
          </p>
          <textarea
            id="given"
            rows={3}
            spellcheck={false}
            autocomplete="off"
            required
            dir="ltr"
            aria-describedby="about-given wrong"
            aria-invalid={isWrong}
            value={typed}
            onInput={(event) => type(event.currentTarget.value)}
          />
        </div>
        <div>
          <label for="refreshers">{proofTexts.refreshers}</label>
          <p id="about-refreshers" class="quiet small">
            {proofTexts.aboutRefreshers}
          </p>
          <textarea
            id="refreshers"
            rows={2}
            spellcheck={false}
            autocomplete="off"
            dir="ltr"
            aria-describedby="about-refreshers wrong"
            value={others}
            onInput={(event) => typeOthers(event.currentTarget.value)}
          />
          <p id="wrong" class="bad" role="alert">
            {isWrong && proofTexts.wrong}
          </p>
        </div>
        <div class="row">
          <button type="submit">{proofTexts.check}</button>
          {(own[0] || first[0]) && (
            <button type="button" onClick={() => use('')}>
              {proofTexts.forget}
            </button>
          )}
        </div>
      </form>
    </section>
  );
}

function Limits() {
  const inputs = seal.proof?.root['inputs'] as { profiles?: { source?: unknown } } | undefined;
  const source = text(inputs?.profiles?.source);
  return (
    <section aria-labelledby="limits">
      <h2 id="limits">{proofTexts.limits}</h2>
      <ul class="text stack">
        {proofTexts.limitsOf.map((limit, i) => (
          <li key={i}>{i === 1 && source ? sentences(limit, proofTexts.profiles(source)) : limit}</li>
        ))}
      </ul>
    </section>
  );
}

function Commands() {
  const key = seal.keys[0] ?? proofTexts.yourKey;
  const commands = {
    verify: `followpress verify --dest s3://BUCKET --key ${key}`,
    reproduce: `followpress reproduce ${base} --key ${key}`,
    audit: `followpress audit ${base} --rpc 8453=https://NODE --sample 1000`,
  };
  return (
    <section aria-labelledby="commands">
      <h2 id="commands">{proofTexts.commands}</h2>
      {(['verify', 'reproduce', 'audit'] as const).map((name) => (
        <div key={name}>
          <p>{proofTexts.commandsOf[name]}</p>
          <Address address={commands[name]} label={proofTexts.copy} />
        </div>
      ))}
    </section>
  );
}
