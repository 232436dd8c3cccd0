package edge_test

import (
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/internal/testenv/servers"
)

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

// nginx runs in one process, or as in Debian, with workers that share the cache.
const (
	oneProcess = "master_process off;"
	twoWorkers = "worker_processes 2;"
)

// startNginx runs nginx as Debian packages it, in one process.
func startNginx(t testing.TB, bucketURL, fallbackURL string, change ...func(*edge.Options)) string {
	t.Helper()
	return runNginx(t, oneProcess, bucketURL, fallbackURL, change...)
}

// startNginxWorkers runs it with a master and workers, which have the user of the test.
func startNginxWorkers(t testing.TB, bucketURL, fallbackURL string) string {
	t.Helper()
	return runNginx(t, twoWorkers+user(), bucketURL, fallbackURL)
}

// user makes workers run as the user of the test, who alone may read its folders.
func user() string {
	if os.Getuid() == 0 {
		return " user root root;"
	}
	return ""
}

func runNginx(t testing.TB, processes, bucketURL, fallbackURL string, change ...func(*edge.Options)) string {
	t.Helper()
	servers.Wanted(t)
	address := servers.FreeAddress(t)
	dir := render(t, "nginx", bucketURL, fallbackURL, address, change...)
	write(t, dir, "nginx.conf", `
load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
daemon off;
`+processes+`
pid nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	include followpress.conf;
}
`)
	servers.Program(t, address, "nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	return "http://" + address
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimLeft(text, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// startWorker runs the Worker in workerd, Cloudflare's own runtime.
func startWorker(t testing.TB, bucketURL, fallbackURL string, change ...func(*edge.Options)) string {
	t.Helper()
	return runWorker(t, bucketURL, fallbackURL, nil, change...)
}

func runWorker(t testing.TB, bucketURL, fallbackURL string, rewrite func(script string) string, change ...func(*edge.Options)) string {
	t.Helper()
	servers.Wanted(t)
	address := servers.FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := render(t, "worker", bucketURL, fallbackURL, "", change...)
	if rewrite != nil {
		body, err := os.ReadFile(filepath.Join(dir, "worker.js"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "worker.js", rewrite(string(body)))
	}
	servers.Program(t, address, "node", "../internal/tools/edge/worker.mjs", filepath.Join(dir, "worker.js"), host, port)
	return "http://" + address
}

// startCaddy runs Caddy as Debian packages it.
func startCaddy(t testing.TB, bucketURL, fallbackURL string, change ...func(*edge.Options)) string {
	t.Helper()
	servers.Wanted(t)
	address := servers.FreeAddress(t)
	dir := render(t, "caddy", bucketURL, fallbackURL, address, change...)
	file := filepath.Join(dir, "Caddyfile")
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Its own address for commands is one for the whole machine.
	write(t, dir, "Caddyfile", "{\n\tadmin off\n\tstorage file_system "+dir+"\n}\n"+string(body))
	servers.Program(t, address, "env", "XDG_CONFIG_HOME="+dir, "caddy", "run", "--adapter", "caddyfile", "--config", file)
	return "http://" + address
}
