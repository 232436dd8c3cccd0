// resolve decides what an edge does with a request. It runs the table of routes from
// TableOf (edge/table.go) and is equivalent to site.Config.Resolve. It uses only what njs,
// CloudFront Functions and browsers have in common.
const table = {{json .Table}};
const hasFallback = {{.HasFallback}};

table.routes.forEach((route) => {
{{- if .Compact}}
  route.matcher = new RegExp('^' + route.path.replace(/~/g, {{json .BaseExpression}}).replace(/@/g, '([^/]*)') + '$');
{{- else}}
  route.matcher = new RegExp(route.path);
{{- end}}
});
const space = new RegExp('^' + table.space + '+|' + table.space + '+$', 'g');
const unsafe = new RegExp(table.unsafe);
{{- if and .PagePath (not .Compact)}}
const otherPath = new RegExp('^{{.PagePath}}$'); // the other paths of the page of an account
{{- end}}

function resolve(method, path, query) {
  if (method === 'OPTIONS') {
    return { kind: 'preflight' };
  }
{{- if not .EFP}}
  if (method !== 'GET' && method !== 'HEAD') {
    return problem('method-not-allowed');
  }
{{- end}}
  path = path.replace(/^\//, '').split('/').map(normal).join('/')
{{- if .PagePath}}.replace({{if .Compact}}/^(u\/[^_/]+)\/?$/{{else}}otherPath{{end}}, {{if .Compact}}'$1/index.html'{{else}}'u/$1/index.html'{{end}}){{end}};
  for (let i = 0; i < table.routes.length; i++) {
    const found = table.routes[i].matcher.exec(path);
    if (found) {
{{- if .EFP}}
      const post = table.routes[i].post;
      if (post ? method !== 'POST' : method !== 'GET' && method !== 'HEAD') {
        return problem(post ? 'post-only' : 'method-not-allowed');
      }
{{- if .HasFallback}}
      if (post) {
        return { kind: 'post', forward: '/' + path };
      }
{{- end}}
{{- end}}
      return answer(table.routes[i], path, found[1], query{{if .EFP}}, found[2]{{end}});
    }
  }
  return problem('no-such-route');
}

// answer decides about a request whose route is known. The result has
// - kind: 'object' (answer with the object at path), 'fallback' (ask it for forward),
//   'problem' or 'preflight'{{if .EFP}}, 'post' (pass the request to forward), 'empty' (a page without entries){{end}}
// - absent: the problem that answers if the object does not exist; '' is an empty search
// - forward, of an object: if the object does not exist, ask the fallback for this
// - fresh: the answer must neither come from a cache nor be stored in one
{{- if .EFP}}
// - unknown, of an object: if the object does not exist, answer with the object of this name under
//   _unknown/, and with address in it
{{- end}}
function answer(route, path, variable, query{{if .EFP}}, second{{end}}) {
  const kept = parse(route, query);
  if (kept.problem) {
    return kept;
  }
{{- if .Compact}}
  const a = { kind: 'object', path: '/' + path, forward: '' };
{{- else}}
  const a = { kind: 'object', path: '/' + path, absent: route.absent, caching: route.caching, forward: '', fresh: false };
{{- end}}
{{- if .Compact}}
  const isUser = variable !== undefined && path.slice({{.UserFolderAt}}, {{.UserAt}}) === 'users/';
{{- else}}
  if (route.subject === 'stored') {
{{- if .Data}}
    a.ranges = route.ranges;
{{- end}}
    return a;
  }
{{- end}}
  const names = Object.keys(kept).sort();
  if (route.variant && names.join() === 'limit') {
    a.path = '/' + route.variant.replace('{board}', variable).replace('{limit}', kept.limit);
    return a; // each limit has an object of its own
  }
{{- if .Compact}}
  if (variable !== undefined && !route.variant && !isUser && !new RegExp('{{.LegalList}}').test(variable)) {
    return problem('bad-token-id');
  }
{{- else}}
  if (route.subject === 'list' && !new RegExp(route.legal).test(variable)) {
    return problem(route.problem);
  }
{{- end}}
{{- if .Table.Lookup}}
  let isName = false;
{{- end}}
  if ({{if .Compact}}isUser{{else}}route.subject === 'user'{{end}}) {
    const user = lookUp(variable);
    if (!user) {
      return problem({{if .Compact}}'no-such-name'{{else}}route.absent{{end}});
    }
{{- if not .Compact}}
    if (user.address) {
      a.absent = '';
{{- if .EFP}}
      a.address = user.text;
      a.unknown = route.unknown ? path.replace(/^.*\//, '') : '';
{{- end}}
    }
{{- end}}
{{- if .Table.Lookup}}
    isName = !user.address;
{{- end}}
{{- if .EFP}}
    const at = {{.UserAt}};
{{- else}}
    const at = path.lastIndexOf('/' + variable + '/') + 1;
{{- end}}
    a.path = '/' + path.slice(0, at) + user.text + path.slice(at + variable.length);
    a.forward = user.uncertain ? a.path : '';
  }
{{- if not .EFP}}
  if (names.length > 0) {
    a.fresh = kept.{{.Fresh}} !== undefined;
    a.kind = hasFallback ? 'fallback' : 'object';
    a.forward = hasFallback ? a.path + '?' + names.map((name) => name + '=' + kept[name]).join('&') : '';
  }
{{- else}}
  if (route.other) {
    const other = lookUp(second);
    if (!other) {
      return problem('no-such-name');
    }
    a.path = a.path.replace(/[^\/]*(\/[^\/]*)$/, other.text + '$1');
  }
{{- if not .Compact}}
  a.fresh = kept.{{.Fresh}} !== undefined;
{{- end}}
{{- if .HasFallback}}
  if (names.length > 0 || route.computed{{if .Table.Lookup}} || isName{{end}}) {
    a.kind = 'fallback';
    a.forward = a.path + (names.length > 0 ? '?' : '') + names.map((name) => name + '=' + kept[name]).join('&');
  }
{{- else}}
  // The first page must not answer for another one. Without an empty one, nothing can answer.
  if (route.computed || names.some((name) => table.params[name].selects)) {
    a.kind = 'empty';
    a.empty = route.empty;
    return route.empty ? a : problem('unavailable');
  }
{{- if .Table.Lookup}}
  if (isName) {
    return problem('unavailable');
  }
{{- end}}
{{- end}}
{{- end}}
  return a;
}

function problem(name) {
  return { kind: 'problem', problem: name };
}

// parse returns the parameters that make a difference, in their normal form, or a
// problem. Of a repeated parameter the first counts{{if .EFP}}, and of a list of words all{{end}}.
function parse(route, query) {
  const seen = {};
  const kept = {};
  const pairs = query ? query.split('&') : [];
  for (let i = 0; i < pairs.length; i++) {
    const parts = /^([^=]*)=?(.*)$/.exec(pairs[i].replace(/\+/g, '%20'));
    const name = parts ? normal(parts[1]) : '';
    if (!route.params || route.params.indexOf(name) < 0 || seen[name]) {
      continue;
    }
{{- if .EFP}}
    const rule = table.params[name];
    seen[name] = !rule.words;
    const value = rule.anyCase ? lowerCase(normal(parts[2])) : normal(parts[2]);
{{- else}}
    seen[name] = true;
    const rule = table.params[name];
    const value = normal(parts[2]);
{{- end}}
    if (!new RegExp({{if .Compact}}rule.number ? '{{.LegalNumber}}' : {{end}}rule.legal).test(value) || rule.number && Number(value) < (rule.least || 0)) {
{{- if .History}}
      if (!rule.problem) {
        continue;
      }
{{- end}}
      return problem(rule.problem);
    }
    if (rule.number) {
      const number = Math.min(Number(value), rule.most || route.most{{if .Compact}} || {{.UsualMost}}{{end}});
      if (number !== ({{if .EFP}}!rule.most && route.default || {{end}}rule.default || 0)) {
        kept[name] = String(number);
      }
    } else if (rule.only) {
      if (new RegExp(rule.only).test(value)) {
        kept[name] = value;
      }
{{- if .EFP}}
    } else if (rule.list) {
      const items = value.split('%2C').filter((item) => item !== '').join('%2C');
      if (items) {
        kept[name] = items;
      }
    } else if (rule.words) {
      const given = (value + '%2C' + kept[name]).split('%2C');
      const words = rule.words.filter((word) => given.indexOf(word) >= 0).join('%2C');
      if (words) {
        kept[name] = words;
      }
    } else if (rule.exact) {
      if (value) {
        kept[name] = value;
      }
    } else if (rule.user) {
      const user = lookUp(value);
      kept[name] = user ? user.text : value;
{{- end}}
    } else {
      const text = value.replace(space, '');
      if (text) {
        kept[name] = /%[89A-F]/.test(text) ? text : lowerCase(text);
      }
    }
  }
{{- if .EFP}}
  if (route.tagged && !(kept.tag && /^(in|out)/.test(kept.direction))) {
    return problem('bad-relationships');
  }
{{- end}}
  return kept;
}

// normal returns the normal form of a segment or a value. A percent sign without two
// hexadecimal digits after it stands for itself.
function normal(text) {
  if (!/[^0-9A-Za-z._~=-]/.test(text)) {
    return text;
  }
  return text.replace(/%[0-9A-Fa-f][0-9A-Fa-f]|[^0-9A-Za-z._~=-]/g, (found) => {
    const code = found.length === 3 ? parseInt(found.slice(1), 16) : found.charCodeAt(0);
    const sign = String.fromCharCode(code);
    return /[0-9A-Za-z._~=-]/.test(sign) ? sign : '%' + (code < 16 ? '0' : '') + code.toString(16).toUpperCase();
  });
}

// lowerCase lowers letters, but not the digits of percent-encoding.
function lowerCase(text) {
  return text.replace(/%..|[A-Z]/g, (found) => (found.length === 3 ? found : found.toLowerCase()));
}

// lookUp returns a user in the form that keys have, null for what no name can be.
// Engines differ in how they fold letters beyond ASCII. So an edge with a fallback looks
// for such a name as it was sent, and asks the fallback if that object does not exist.
function lookUp(text) {
  if (/^0[xX][0-9A-Fa-f]{40}$/.test(text)) {
    return { text: text.toLowerCase(), address: true };
  }
  const uncertain = hasFallback && /%[89A-F]/.test(text);
  try {
    const name = decodeURIComponent(text);
    text = uncertain ? text : normal(encodeURIComponent(fold(name)));
  } catch (e) {
    return null; // not UTF-8
  }
  const isName = text !== '' && text !== '.' && text !== '..' && !unsafe.test(text) && !/^0x[0-9a-f]{40}$/.test(text);
  const tooLong = !uncertain && text.replace(/%../g, '.').length > {{.MaxNameBytes}};
  return isName && !tooLong ? { text: text, uncertain: uncertain } : null;
}

// fold returns a name in lower case, letter by letter, without U+FE0F, and composed (NFC)
// if the engine can do that. Not every engine knows the lower case of U+0130.
function fold(name) {
  const dotted = (text) => text.replace(/\u0130/g, 'i\u0307');
  name = name.replace(/\uFE0F/g, '');
{{- if .Small}}
  return dotted(name).toLowerCase();
{{- else}}
  if (!name.normalize) {
    return dotted(name).toLowerCase();
  }
  return Array.from(dotted(name.normalize('NFC'))).map((letter) => letter.toLowerCase()).join('').normalize('NFC');
{{- end}}
}

// ownAnswer makes an answer that needs no origin: a problem by its name, '' for an empty
// search, or a preflight. The caller adds the headers that every answer has.
function ownAnswer(a, name, ifNoneMatch) {
  const headers = {};
  if (a.kind === 'preflight') {
    return { status: 204, headers: table.preflight, body: '' };
  }
{{- if not .Compact}}
  if (a.fresh) {
    headers['x-refresh'] = 'unavailable';
  }
{{- end}}
{{- if not .Small}}
{{- if .EFP}}
  if (name === '' || a.kind === 'empty') {
    const empty = a.empty || table.empty;
    return page(a, empty.body, empty.etag, ifNoneMatch);
  }
{{- else}}
  if (name === '') {
    headers['content-type'] = 'application/json';
    headers['cache-control'] = a.fresh ? '{{.NoStore}}' : a.caching;
    headers.etag = table.empty.etag;
    return holds(ifNoneMatch, table.empty.etag)
      ? { status: 304, headers: headers, body: '' }
      : { status: 200, headers: headers, body: table.empty.body };
  }
{{- end}}
{{- else if .Alone}}
  if (a.kind === 'empty') {
    return { status: 200, headers: { 'content-type': 'application/json', 'cache-control': '{{.AbsentCaching}}' }, body: a.empty.body };
  }
{{- end}}
  const p = table.problems[name];
  headers['content-type'] = 'application/problem+json';
  headers['cache-control'] = {{if .Compact}}p.status > 404 ? '{{.NoStore}}' : '{{.AbsentCaching}}'{{else}}a.fresh ? '{{.NoStore}}' : p.caching{{end}};
  if (p.status === 405) {
    headers.allow = {{if .EFP}}name === 'post-only' ? '{{.AllowPost}}' : {{end}}'{{.Allow}}';
  } else if (p.status === 503) {
    headers['retry-after'] = '{{.RetryAfter}}';
  }
  const body = { type: 'about:blank', title: {{if .Compact}}({{json .Titles}})[p.status]{{else}}p.title{{end}}, status: p.status, detail: p.detail, response: p.detail };
  return { status: p.status, headers: headers, body: JSON.stringify(body) };
}
{{- if not .Small}}
{{- if .EFP}}

// page makes an answer with a body that the edge has.
function page(a, body, etag, ifNoneMatch) {
  const headers = { 'content-type': 'application/json', 'cache-control': a.fresh ? '{{.NoStore}}' : a.caching };
  if (a.fresh) {
    headers['x-refresh'] = 'unavailable';
  }
  if (a.caching === '{{.NoStore}}') {
    return { status: 200, headers: headers, body: body };
  }
  headers.etag = etag;
  return holds(ifNoneMatch, etag)
    ? { status: 304, headers: headers, body: '' }
    : { status: 200, headers: headers, body: body };
}

// filled returns the body of an object for unknown addresses with the address in its places.
function filled(a, body) {
  return body.split('{{.UnknownAddress}}').join(a.address);
}
{{- end}}

{{- if .Missing}}

// missing returns the 404 that browsers show, undefined for other clients and paths.
function missing(path, accept) {
  if (new RegExp('{{.ForPeople}}').test(path) && /text\/html/.test(accept)) {
    return { status: 404, headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': '{{.NoStore}}' }, body: {{json .Missing}} };
  }
}
{{- end}}

// holds reports whether an If-None-Match header has an entity tag.
function holds(ifNoneMatch, etag) {
  const tags = ifNoneMatch ? ifNoneMatch.split(',') : [];
  return tags.some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
{{- end}}
