package templates

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/site"
)

// A varnishParam is a parameter with one largest value: limits differ by route.
type varnishParam struct {
	Sub  string // of the subroutine
	Name site.Param
	Rule site.EdgeParam
	Most int
}

// VarnishParams are the subroutines that read parameters.
func (v *edgeView) VarnishParams() []varnishParam {
	var all []varnishParam
	for _, r := range v.Table.Routes {
		for _, name := range r.Params {
			p := varnishParam{Sub: string(name), Name: name, Rule: v.Table.Params[name], Most: v.Table.Params[name].Most}
			if name == site.ParamLimit {
				p.Sub, p.Most = string(name)+"_"+strconv.Itoa(r.Most), r.Most
			}
			if !slices.ContainsFunc(all, func(other varnishParam) bool { return other.Sub == p.Sub }) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b varnishParam) int { return cmp.Compare(a.Sub, b.Sub) })
	return all
}

// A varnishDirect matches paths of objects as they stand that are treated alike.
type varnishDirect struct{ Paths, Absent, Caching string }

// VarnishDirect are the groups of them, the most popular first.
func (v *edgeView) VarnishDirect() []varnishDirect {
	var all []varnishDirect
	for _, r := range v.Table.Routes {
		if r.Subject == site.EdgeUser {
			continue
		}
		path := directExpression(r)
		i := slices.IndexFunc(all, func(d varnishDirect) bool { return d.Absent == r.Absent && d.Caching == r.Caching })
		if i < 0 {
			all = append(all, varnishDirect{path, r.Absent, r.Caching})
		} else {
			all[i].Paths += "|" + path
		}
	}
	slices.SortStableFunc(all, func(a, b varnishDirect) int {
		isList := func(d varnishDirect) bool { return d.Absent == site.NoSuchList.Name }
		return cmp.Compare(map[bool]int{true: 0, false: 1}[isList(a)], map[bool]int{true: 0, false: 1}[isList(b)])
	})
	return all
}

// withSlash is an expression for a path with its first slash.
func withSlash(path string) string { return "^/" + strings.TrimPrefix(path, "^") }

// aroundVariable matches a path in two groups, around its variable.
func aroundVariable(path string) string {
	before, after, _ := strings.Cut(strings.TrimSuffix(withSlash(path), "$"), "([^/]*)")
	return "^(" + strings.TrimPrefix(before, "^") + ")[^/]*(" + after + ")$"
}

// upToLimit is the path of a leaderboard with another limit, up to the limit, as an
// expression of VCL.
func upToLimit(variant string) string {
	before, after, _ := strings.Cut(strings.TrimSuffix(variant, "{limit}"), "{board}")
	return before + `" + regsub(req.http.X-Followpress-Path, "^.*/", "") + "` + after
}

func alternatives(all []site.Param) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = string(p)
	}
	return strings.Join(names, "|")
}

var staleWhileRevalidate = regexp.MustCompile(`stale-while-revalidate=(\d+)`)

// staleSeconds is how long an answer may be given while a newer one is fetched.
func staleSeconds(cacheControl string) string {
	if found := staleWhileRevalidate.FindStringSubmatch(cacheControl); found != nil {
		return found[1]
	}
	return "0"
}

// A paramProblem is the problem of a bad parameter.
type paramProblem struct {
	Name    site.Param
	Problem string
	Status  int
}

func varnishParamProblem(name site.Param) paramProblem {
	rule := site.Config{}.Edge().Params[name]
	return paramProblem{name, rule.Problem, problemStatus(rule.Problem)}
}

// problemStatus is 0 for a problem that does not exist.
func problemStatus(name string) int {
	i := slices.IndexFunc(site.Problems(), func(p *site.Problem) bool { return p.Name == name })
	if i < 0 {
		return 0
	}
	return site.Problems()[i].Status
}

// Of the URL of a request, in bytes: the most whose normal form fits into the memory that
// Varnish has for a request, and the most that the fallback takes beside all headers.
const (
	varnishMostURL       = 1024
	varnishMostForwarded = 12 << 10
)

// VarnishMostURL is the length beyond which the fallback has to read a URL.
func (v *edgeView) VarnishMostURL() int { return varnishMostURL }

// VarnishMostForwarded is the length beyond which nobody does.
func (v *edgeView) VarnishMostForwarded() int { return varnishMostForwarded }

// VarnishTooLong is the body for it: the handler has no such problem, since its server refuses.
func (v *edgeView) VarnishTooLong() string {
	return `{"type":"about:blank","title":"Request URI Too Long","status":414,"detail":"The URL is too long","response":"The URL is too long"}`
}

// droppedHeaders are headers of requests that origins react to. S3 refuses a GET with most of its
// own, or reads it as signed, and others choose another form of the answer.
const droppedHeaders = `
Accept Accept-Charset Accept-Datetime Accept-Encoding Accept-Language Access-Control-Request-Headers Access-Control-Request-Method
Authorization Cache-Control Content-Disposition Content-Encoding Content-Language Content-Length Content-Location Content-MD5
Content-Range Content-Type Cookie Cookie2 DNT Date Digest Early-Data Expect Expires Forwarded From HTTP2-Settings If-Match If-Range
If-Unmodified-Since Keep-Alive Last-Modified Max-Forwards Origin Pragma Prefer Priority Proxy-Authenticate Proxy-Authorization
Proxy-Connection Range Referer Save-Data Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-GPC TE Trailer
Traceparent Tracestate Transfer-Encoding Upgrade Upgrade-Insecure-Requests User-Agent Via Want-Digest Warning

CF-Connecting-IP CF-IPCountry CF-Ray CF-Visitor CF-Worker Client-IP Fastly-Client-IP Front-End-Https True-Client-IP X-Client-IP
X-Cluster-Client-IP X-Correlation-Id X-Forwarded X-Forwarded-By X-Forwarded-For X-Forwarded-Host X-Forwarded-Port X-Forwarded-Prefix
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

// VarnishDropped are the headers of requests that do not go to the origins.
func (v *edgeView) VarnishDropped() []string { return strings.Fields(droppedHeaders) }
