package edge

import (
	"cmp"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/followpress/followpress/site"
)

// Varnish is Varnish 7.
const Varnish Kind = "varnish"

func init() {
	definitions[Varnish] = definition{
		outputs: [][2]string{{"varnish.vcl", "followpress.vcl"}},
		funcs:   template.FuncMap{"before": aroundVariable, "variant": upToLimit, "join": joinParams, "grace": staleSeconds},
		view: func(v *view) (any, error) {
			if v.Bucket.TLS || v.Fallback != nil && v.Fallback.TLS || v.Live != nil && v.Live.TLS {
				return nil, errors.New("varnish speaks no TLS to its backends: give http:// URLs, of a TLS proxy beside it if need be (docs/deploy/varnish.md)")
			}
			return varnishView{v}, nil
		},
	}
}

type varnishView struct{ *view }

// A varnishParam is a parameter with its largest number, which may differ by route.
type varnishParam struct {
	Sub  string // name of the subroutine that reads it, without prefix
	Name site.Param
	Rule Param
	Most int
}

// Unreadable is what stands for a number with more digits than Varnish can read.
func (p varnishParam) Unreadable() int { return p.Most + 1 }

// Param describes a parameter of a route.
func (v varnishView) Param(r Row, name site.Param) varnishParam {
	p := varnishParam{Sub: string(name), Name: name, Rule: v.Table.Params[name], Most: v.Table.Params[name].Most}
	if p.Rule.Number && p.Most == 0 {
		p.Most = r.Most
		p.Sub += "_" + strconv.Itoa(r.Most)
		if r.Default != 0 {
			p.Rule.Default = r.Default
			p.Sub += "_" + strconv.Itoa(r.Default)
		}
	}
	return p
}

// Params lists the parameters that differ, one for each subroutine.
func (v varnishView) Params() []varnishParam {
	bySub := map[string]varnishParam{}
	for _, r := range v.Table.Routes {
		for _, name := range r.Params {
			p := v.Param(r, name)
			bySub[p.Sub] = p
		}
	}
	return slices.SortedFunc(maps.Values(bySub), func(a, b varnishParam) int { return cmp.Compare(a.Sub, b.Sub) })
}

// A varnishDirect matches URL paths that are keys as they stand and are handled alike.
type varnishDirect struct {
	Paths, Absent, Caching string
	Maybe                  bool // the fallback answers for what does not exist
}

// Direct groups these paths.
func (v varnishView) Direct() []varnishDirect {
	var all []varnishDirect
	for _, r := range v.Table.Direct() {
		like := varnishDirect{Absent: r.Absent, Caching: r.Caching}
		if row := v.Row(r); r.Unknown {
			like.Absent, like.Maybe = row.AbsentAddress(), v.HasFallback
		}
		i := slices.IndexFunc(all, func(d varnishDirect) bool { d.Paths = ""; return d == like })
		if i < 0 {
			like.Paths = r.Direct
			all = append(all, like)
		} else {
			all[i].Paths += "|" + r.Direct
		}
	}
	return all
}

// A varnishRow is a row of the table of APIEFP with what decides about it.
type varnishRow struct {
	Row
	View varnishView
}

// Row adds what decides about a row.
func (v varnishView) Row(r Row) varnishRow { return varnishRow{r, v} }

// WithoutFallback is what answers for other pages than the first.
func (r varnishRow) WithoutFallback() string {
	if r.Empty.Body == "" {
		return `synth(503, "unavailable")`
	}
	return `synth(200, "` + r.View.emptyName(r.Empty) + `")`
}

// AbsentAddress is the problem that answers for an address without an object if there is no fallback,
// or the page without entries.
func (r varnishRow) AbsentAddress() string {
	if r.Empty.Body == "" || r.View.HasFallback {
		return r.Absent
	}
	return r.View.emptyName(r.Empty)
}

// A varnishEmpty is a page without entries.
type varnishEmpty struct {
	Name string // in the reason of a status
	Answer
}

// Empties are the pages without entries that an edge without a fallback answers with.
func (v varnishView) Empties() []varnishEmpty {
	var all []varnishEmpty
	for _, r := range v.Table.Routes {
		known := slices.ContainsFunc(all, func(e varnishEmpty) bool { return e.Answer == r.Empty })
		if v.Alone && r.Empty.Body != "" && !known {
			all = append(all, varnishEmpty{"empty-" + strconv.Itoa(len(all)), r.Empty})
		}
	}
	return all
}

func (v varnishView) emptyName(body Answer) string {
	for _, e := range v.Empties() {
		if e.Answer == body {
			return e.Name
		}
	}
	return "empty"
}

// aroundVariable matches the URL paths of a route in two groups, around the variable.
func aroundVariable(r Row) string {
	before, after := r.AroundVariable()
	return "^(" + before + ")[^/]*(" + after + ")$"
}

// upToLimit is a VCL expression for the key of a variant, up to the limit.
func upToLimit(variant string) string {
	before, after, _ := strings.Cut(strings.TrimSuffix(variant, "{limit}"), "{board}")
	return before + `" + regsub(req.http.X-Followpress-Path, "^.*/", "") + "` + after
}

func joinParams(all []site.Param) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = string(p)
	}
	return strings.Join(names, "|")
}

var staleWhileRevalidate = regexp.MustCompile(`stale-while-revalidate=(\d+)`)

// staleSeconds is how long an older answer may be served while a newer one is fetched.
func staleSeconds(cacheControl string) string {
	if found := staleWhileRevalidate.FindStringSubmatch(cacheControl); found != nil {
		return found[1]
	}
	return "0"
}

// MostURL is the length in bytes of the longest URL that Varnish decides about itself: a
// longer one's normal form does not fit into the memory that Varnish has for a request.
func (v varnishView) MostURL() int { return 1024 }

// MostForwarded is the length in bytes of the longest URL that goes to the fallback, which
// limits the sum of URL and headers.
func (v varnishView) MostForwarded() int { return 12 << 10 }

// TooLong is the body for a longer one. It is no problem of the API, because Go's server
// answers such requests before the handler sees them.
func (v varnishView) TooLong() string {
	return `{"type":"about:blank","title":"Request URI Too Long","status":414,"detail":"The URL is too long","response":"The URL is too long"}`
}

// droppedHeaders are request headers that change an origin's answer. S3 refuses a GET with
// most of its own, or takes it for a signed one; others select another form of the answer.
const droppedHeaders = `
Accept Accept-Charset Accept-Datetime Accept-Encoding Accept-Language Access-Control-Request-Headers Access-Control-Request-Method
Authorization Cache-Control Content-Disposition Content-Encoding Content-Language Content-Length Content-Location Content-MD5
Content-Range Content-Type Cookie Cookie2 DNT Date Digest Early-Data Expect Expires Forwarded From HTTP2-Settings If-Match If-Range
If-Unmodified-Since Keep-Alive Last-Modified Max-Forwards Origin Pragma Prefer Priority Proxy-Authenticate Proxy-Authorization
Proxy-Connection Range Referer Save-Data Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-GPC TE Trailer
Traceparent Tracestate Transfer-Encoding Upgrade Upgrade-Insecure-Requests User-Agent Via Want-Digest Warning

CF-Connecting-IP CF-IPCountry CF-Ray CF-Visitor CF-Worker Client-IP Fastly-Client-IP Front-End-Https True-Client-IP X-Client-IP
X-Cluster-Client-IP X-Correlation-Id X-Forwarded X-Forwarded-By X-Forwarded-Host X-Forwarded-Port X-Forwarded-Prefix
X-Forwarded-Proto X-Forwarded-Protocol X-Forwarded-Scheme X-Forwarded-Server X-Forwarded-Ssl X-Forwarded-Uri X-Host
X-HTTP-Host-Override X-HTTP-Method X-HTTP-Method-Override X-Method-Override X-Original-Host X-Original-URL X-Purpose X-Real-IP
X-Request-Id X-Requested-With X-Rewrite-URL X-Url-Scheme X-Varnish X-Wap-Profile

X-Amz-ACL X-Amz-Algorithm X-Amz-Archive-Description X-Amz-Bucket-Object-Lock-Enabled X-Amz-Bucket-Object-Lock-Token X-Amz-Bucket-Region
X-Amz-Bypass-Governance-Retention X-Amz-Checksum-Algorithm X-Amz-Checksum-CRC32 X-Amz-Checksum-CRC32C X-Amz-Checksum-CRC64NVME
X-Amz-Checksum-Mode X-Amz-Checksum-SHA1 X-Amz-Checksum-SHA256 X-Amz-Checksum-Type X-Amz-Cf-Id X-Amz-Client-Token
X-Amz-Content-SHA256 X-Amz-Copy-Source X-Amz-Copy-Source-If-Match X-Amz-Copy-Source-If-Modified-Since
X-Amz-Copy-Source-If-None-Match X-Amz-Copy-Source-If-Unmodified-Since X-Amz-Copy-Source-Range
X-Amz-Copy-Source-Server-Side-Encryption-Customer-Algorithm X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key
X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key-MD5 X-Amz-Create-Session-Mode X-Amz-Credential X-Amz-Date
X-Amz-Decoded-Content-Length X-Amz-Expected-Bucket-Owner X-Amz-Expires X-Amz-Fwd-Status X-Amz-Grant-Full-Control X-Amz-Grant-Read
X-Amz-Grant-Read-ACP X-Amz-Grant-Write X-Amz-Grant-Write-ACP X-Amz-Max-Parts X-Amz-Meta-Data X-Amz-MFA X-Amz-MP-Object-Size
X-Amz-Object-Attributes X-Amz-Object-Lock-Legal-Hold X-Amz-Object-Lock-Mode X-Amz-Object-Lock-Retain-Until-Date
X-Amz-Object-Ownership X-Amz-Optional-Object-Attributes X-Amz-Part-Number-Marker X-Amz-Request-Payer X-Amz-Request-Route
X-Amz-Request-Token X-Amz-S3session-Token X-Amz-SDK-Checksum-Algorithm X-Amz-Security-Token X-Amz-Server-Side-Encryption
X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id X-Amz-Server-Side-Encryption-Bucket-Key-Enabled X-Amz-Server-Side-Encryption-Context
X-Amz-Server-Side-Encryption-Customer-Algorithm X-Amz-Server-Side-Encryption-Customer-Key X-Amz-Server-Side-Encryption-Customer-Key-MD5
X-Amz-Signature X-Amz-SignedHeaders X-Amz-Source-Account X-Amz-Source-Arn X-Amz-Source-Expected-Bucket-Owner X-Amz-Storage-Class
X-Amz-Tagging X-Amz-Tagging-Directive X-Amz-Target X-Amz-Trailer X-Amz-User-Agent X-Amz-Version-Id
X-Amz-Website-Redirect-Location X-Amz-Write-Offset-Bytes Amz-SDK-Invocation-Id Amz-SDK-Request X-Amzn-Trace-Id

X-Goog-ACL X-Goog-Allowed-Resources X-Goog-API-Client X-Goog-API-Key X-Goog-Algorithm X-Goog-Content-Length-Range X-Goog-Content-SHA256
X-Goog-Copy-Source X-Goog-Credential X-Goog-Custom-Time X-Goog-Custom-Audit-Id X-Goog-Date X-Goog-Encryption-Algorithm
X-Goog-Encryption-Key X-Goog-Encryption-Key-SHA256 X-Goog-Encryption-KMS-Key-Name X-Goog-Expires X-Goog-Generation X-Goog-Hash
X-Goog-If-Generation-Match X-Goog-If-Generation-Not-Match X-Goog-If-Metageneration-Match X-Goog-If-Metageneration-Not-Match
X-Goog-Impersonate-Service-Account X-Goog-Interop-List-Objects-Format X-Goog-Metageneration X-Goog-Project-Id X-Goog-Request-Params
X-Goog-Request-Reason X-Goog-Resumable X-Goog-Security-Token X-Goog-Signature X-Goog-SignedHeaders X-Goog-Storage-Class
X-Goog-User-Project

CF-Copy-Source-If-Match CF-Copy-Source-If-None-Match CF-Create-Bucket-If-Missing CF-R2-Jurisdiction
X-MS-Access-Tier X-MS-Authorization-Auxiliary X-MS-Blob-Type X-MS-Client-Request-Id X-MS-Copy-Source X-MS-Date
X-MS-Encryption-Algorithm X-MS-Encryption-Context X-MS-Encryption-Key X-MS-Encryption-Key-SHA256 X-MS-Encryption-Scope X-MS-If-Tags
X-MS-Lease-Id X-MS-Range X-MS-Range-Get-Content-CRC64 X-MS-Range-Get-Content-MD5 X-MS-Upn X-MS-Version
X-Minio-Deployment-Id X-Minio-Extract X-Minio-Force-Create X-Minio-Force-Delete X-Minio-Replication-Actual-Object-Size
X-Minio-Source-ETag X-Minio-Source-MTime X-Minio-Source-Proxy-Request X-Minio-Source-Replication-Check
X-Minio-Source-Replication-Request X-Minio-Source-VersionId X-Minio-Time

X-Followpress-Absent X-Followpress-Ask X-Followpress-Asked X-Followpress-Bad X-Followpress-Ban X-Followpress-Fresh
X-Followpress-Grace X-Followpress-Left X-Followpress-Maybe X-Followpress-Query X-Followpress-Stale X-Followpress-Text
`

// Dropped lists the request headers that are not sent to origins.
func (v varnishView) Dropped() []string {
	all := strings.Fields(droppedHeaders)
	if v.Live != nil { // which may get it: see vcl_backend_fetch
		all = slices.DeleteFunc(all, func(name string) bool { return name == "Prefer" })
	}
	if v.EFP {
		framing := []string{"Content-Length", "Transfer-Encoding"} // of a body that is passed on
		all = append(slices.DeleteFunc(all, func(name string) bool { return slices.Contains(framing, name) }), "X-Followpress-Other")
	}
	return all
}
