import cf from 'cloudfront';

{{template "resolve.js" .}}
function handler(event) {
  const request = event.request;
  const a = resolve(request.method, request.uri, request.rawQueryString() || '');
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
  // As on the other edges, answers are whole and If-None-Match is the only condition.
  ['range', 'if-range', 'if-match', 'if-modified-since', 'if-unmodified-since'].forEach((name) => {
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
  if (a.kind === 'fallback') {
{{- end}}
    cf.selectRequestOriginById('fallback');
  } else if (hasFallback) {
    // The fallback answers for objects that do not exist.
    cf.createRequestOriginGroup({
      originIds: [{ originId: 'bucket' }, { originId: 'fallback' }],
      failoverCriteria: { statusCodes: [400, 403, 404, 500, 502, 503, 504] },
    });
  }
  return request;
}

function own(a, name) {
  const answer = ownAnswer(a, name);
  const headers = {};
  Object.keys(answer.headers).forEach((header) => {
    headers[header] = { value: answer.headers[header] };
  });
  table.every.forEach((header) => {
    headers[header.name] = { value: header.value };
  });
  const response = { statusCode: answer.status, headers: headers };
  if (answer.body) {
    response.body = answer.body;
  }
  return response;
}
