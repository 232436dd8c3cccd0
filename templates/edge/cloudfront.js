import cf from 'cloudfront';

{{template "resolve.js" .}}
function handler(event) {
  const request = event.request;
{{- if .Live}}
  const headers = request.headers;
  const signed = (headers['x-signed'] || {}).value === 'only'; // nobody signs what live says
  // What is left has an answer of its own: it is part of the cache key.
  delete headers[signed ? 'x-after' : 'x-signed'];
  if (!headers['x-after']) {
    delete headers.prefer;
  }
  if (!signed && /^\/_live\/[a-z]+$/.test(request.uri) && /^(GET|HEAD)$/.test(request.method)) {
    request.querystring = '';
    cf.selectRequestOriginById('patient');
    return request;
  }
  delete headers['last-event-id'];
{{- end}}
{{- if and .Missing .HasFallback}}
  // Browsers get another 404 at these paths: Accept is part of the cache key.
  const accept = request.headers.accept;
  const people = new RegExp('{{.ForPeople}}').test(request.uri) && accept && /text\/html/.test(accept.value);
  delete request.headers.accept;
  if (people) {
    request.headers.accept = { value: 'text/html' };
  }
{{- end}}
  const a = resolve(request.method, request.uri, request.rawQueryString() || '');
{{- if and .Missing .HasFallback}}
  if (people && a.problem === 'no-such-route') {
    cf.selectRequestOriginById('fallback');
    request.querystring = '';
    return request;
  }
{{- end}}
  if (a.kind === 'preflight' || a.kind === 'problem') {
    return own(a, a.problem);
  }
{{- if .Alone}}
  if (a.kind === 'empty') {
    return own(a);
  }
{{- end}}
{{- if and .EFP .HasFallback}}
  if (a.kind === 'post') {
    const length = request.headers['content-length'];
    if (length && length.value > {{.MaxBody}}) {
      return own(a, 'body-too-large');
    }
  }
{{- end}}
  // As on the other edges, answers are whole{{if .Data}} but for tables,{{end}} and If-None-Match is the only condition.
  ['range', 'if-range', 'if-match', 'if-modified-since', 'if-unmodified-since']{{if .Data}}.slice(2 * /parquet$/.test(a.path)){{end}}.forEach((name) => {
    delete request.headers[name];
  });
  const forward = a.forward.split('?');
{{- if .EFP}}
  const asks = a.kind !== 'object';
  request.uri = asks ? forward[0] : a.path;
  request.querystring = forward[1] || '';
  if (asks) {
{{- else}}
  request.uri = a.kind === 'fallback' ? forward[0] : a.path;
  request.querystring = a.kind === 'fallback' ? forward[1] : '';
{{- if .Live}}
  const asks = a.kind === 'fallback';
{{- end}}
  if (a.kind === 'fallback') {
{{- end}}
{{- if .Live}}
    if (request.method === 'POST') {
      cf.selectRequestOriginById('fallback'); // nobody answers a POST in the place of live
      return request;
    }
  }
  // A group has two origins. Only the bucket has reports and what is kept beside the site, and only the fallback finds a name in another form.
  if (signed && asks) {
    cf.selectRequestOriginById('fallback');
    return request;
  }
  const group = !signed && !/^\/_(data|reports|snapshot)\//.test(request.uri)
    ? [headers['x-after'] || /(^|&){{.Fresh}}=/.test(request.querystring) ? 'patient' : 'live', asks || a.forward ? 'fallback' : 'bucket']
    : ['bucket', 'fallback'];
  cf.createRequestOriginGroup({
    originIds: group.map((id) => ({ originId: id })),
    failoverCriteria: { statusCodes: [500, 502, 503, 504] },
  });
{{- else}}
    cf.selectRequestOriginById('fallback');
  } else if (hasFallback) {
    // The fallback answers for objects that do not exist.
    cf.createRequestOriginGroup({
      originIds: [{ originId: 'bucket' }, { originId: 'fallback' }],
      failoverCriteria: { statusCodes: [400, 403, 404, 500, 502, 503, 504] },
    });
  }
{{- end}}
  return request;
}

function own(a, name) {
  const answer = ownAnswer(a, name);
  const headers = {};
  [answer.headers, table.every].forEach((all) => {
    for (const header in all) {
      headers[header] = { value: all[header] };
    }
  });
  const response = { statusCode: answer.status, headers: headers };
  if (answer.body) {
    response.body = answer.body;
  }
  return response;
}
