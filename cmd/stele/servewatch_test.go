package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
)

// startWatched starts a server with everything that has metrics, and has it do something of all
// that is counted.
func startWatched(t *testing.T) *process {
	t.Helper()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	runStele(t, "ns", "add", "urn:example", "--data", data)
	runStele(t, "zone", "add", "urn:example", "--zone", "names.example.org", "--parts", "1", "--ns", "ns1.names.example.org=192.0.2.1", "--mailbox", "hostmaster@example.org", "--data", data)
	secondary := newFakeSecondary(t, 7)
	runStele(t, "zone", "secondary", "add", "names.example.org", "--network", "127.0.0.0/8", "--notify", secondary.at, "--data", data)
	runStele(t, "register", "urn:example:1", "--to", "https://example.org/1", "--data", data)
	a := certtest.New(t, time.Now)
	cert, key := a.Issue(t, folder, 100*time.Hour, 11, "id.example.org")
	p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--dns", "127.0.0.1:0", "--hdl", "127.0.0.1:0",
		"--metrics", "127.0.0.1:0", "--notify-allow", "127.0.0.0/8", "--transfer-allow", "127.0.0.0/8", "--log-origin", "names.example.org/.log", "--log-interval", "100ms",
		"--escrow", "vault=file://"+filepath.Join(folder, "vault"), "--usage", "--trace", "http://127.0.0.1:9", "--trace-sample", "0")
	makeTraffic(t, p)
	return p
}

// makeTraffic asks for a name over the web and over the DNS.
func makeTraffic(t *testing.T, p *process) {
	t.Helper()
	if response, _ := httpGet(t, p.http+"/urn:example:1"); response.StatusCode != http.StatusFound {
		t.Fatalf("the name leads nowhere: %s", response.Status)
	}
	at, _, _ := strings.Cut(p.dns, ",")
	askDNS(t, at, "names.example.org.", 6) // SOA
}

// exposed is a metric as the server exposes it.
type exposed struct{ name, kind, help, labels string }

var (
	helpLine   = regexp.MustCompile(`(?m)^# HELP (stele_\w+) (.*)$`)
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`)
	sampleLine = regexp.MustCompile(`(?m)^(stele_\w+?)(?:_bucket|_sum|_count)?\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`(\w+)="`)
)

// readExposed returns the metrics of our own in an exposition, by name.
func readExposed(text string) (list []exposed) {
	kinds, labels := map[string]string{}, map[string]string{}
	for _, m := range typeLine.FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[2]
	}
	for _, m := range sampleLine.FindAllStringSubmatch(text, -1) {
		var names []string
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				names = append(names, "`"+l[1]+"`")
			}
		}
		labels[m[1]] = strings.Join(names, " ")
	}
	for _, m := range helpLine.FindAllStringSubmatch(text, -1) {
		list = append(list, exposed{m[1], kinds[m[1]], strings.ReplaceAll(m[2], `\\`, `\`), labels[m[1]]})
	}
	return list
}

// TestWatching: what a server exposes is described, and Prometheus can use it.
func TestWatching(t *testing.T) {
	p := startWatched(t)
	text := exposition(t, p)
	t.Run("reference", func(t *testing.T) { checkReference(t, text) })
	t.Run("Prometheus", func(t *testing.T) { checkPrometheus(t, p, text) })
	t.Run("top", func(t *testing.T) { checkTop(t, p) })
	if code := p.end(t, os.Interrupt); code != 0 {
		t.Errorf("it ends with %d", code)
	}
}

// checkTop: top prints one picture where there is no terminal.
func checkTop(t *testing.T, p *process) {
	said := runStele(t, "top", "--metrics", p.metrics, "--interval", "100ms")
	for _, want := range []string{"ready", "redirects", "names         1", "copies", "Behind the changes", "Process"} {
		if !strings.Contains(said, want) || strings.Contains(said, "\x1b") {
			t.Errorf("there is no %q in\n%s", want, said)
		}
	}
	var picture struct {
		Ready bool
		Names float64
	}
	if err := json.Unmarshal([]byte(runStele(t, "top", "--once", "--json", "--metrics", p.metrics, "--interval", "100ms")), &picture); err != nil || !picture.Ready || picture.Names != 1 {
		t.Errorf("%+v, %v", picture, err)
	}
	out, err := steleCommand(t, "top", "--once", "--metrics", p.http).CombinedOutput()
	if err == nil {
		t.Errorf("the public address is taken for that of the metrics: %s", out)
	}
}

// checkReference: docs/watching.md has a row for each metric that a server exposes, and no other.
// Run with -update it writes them. Prometheus finds no fault with the exposition.
func checkReference(t *testing.T, text string) {
	lint := exec.Command("promtool", "check", "metrics")
	lint.Stdin = strings.NewReader(text)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	var table strings.Builder
	table.WriteString("| metric | type | labels | is |\n|---|---|---|---|\n")
	for _, m := range readExposed(text) {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.name, m.kind, m.labels, m.help)
	}
	name := filepath.Join("..", "..", "docs", "watching.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(string(page), "| metric | type |")
	if begin < 0 {
		t.Fatal("docs/watching.md has no table of metrics")
	}
	length := strings.Index(string(page)[begin:], "\n\n") + 1
	if have := string(page)[begin : begin+length]; have != table.String() {
		if *update {
			if err := os.WriteFile(name, []byte(string(page)[:begin]+table.String()+string(page)[begin+length:]), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("docs/watching.md differs from what the server exposes; run 'go test ./cmd/stele -run TestWatching -update'. It exposes\n%s", &table)
	}
}

// exposition waits until the server exposes what it finds out in the background, and returns all.
func exposition(t *testing.T, p *process) (text string) {
	t.Helper()
	eventually(t, "all metrics are exposed", func() bool {
		_, text = httpGet(t, p.metrics+"/metrics")
		for _, late := range []string{"stele_http_requests_total{", "stele_dns_answers_total{", "stele_secondary_behind_seconds{", "stele_escrow_deposit_timestamp_seconds{", "stele_certificate_expiry_timestamp_seconds{"} {
			if !strings.Contains(text, late) {
				return false
			}
		}
		return strings.Contains(text, "\nstele_names 1\n") && strings.Contains(text, "\nstele_zones 1\n")
	})
	return text
}

// panelExpressions returns the expressions of the dashboard, by the titles of panels. No panel lies over another one.
func panelExpressions(t *testing.T) map[string][]string {
	t.Helper()
	panels := map[string][]string{}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana-stele.json"))
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	seen, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if seen[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("the panel %q has the number of another one, or is too wide", p.Title)
		}
		seen[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := cells[at]; other != "" {
					t.Errorf("the panel %q lies over %q", p.Title, other)
				}
				cells[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			panels[p.Title] = append(panels[p.Title], strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m").Replace(target.Expr))
		}
	}
	return panels
}

// alertExpressions returns the expressions of the alerts that Prometheus has loaded.
func alertExpressions(t *testing.T, at string) map[string]string {
	t.Helper()
	answer, err := http.Get(at + "/api/v1/rules")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var loaded struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Query string }
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&loaded); err != nil {
		t.Fatal(err)
	}
	alerts := map[string]string{}
	for _, g := range loaded.Data.Groups {
		for _, r := range g.Rules {
			alerts[r.Name] = r.Query
		}
	}
	return alerts
}

// checkPrometheus: Prometheus takes our configuration and rules, scrapes a server, and has an answer to each expression of
// the dashboard. The alerts name only metrics that the server exposes.
func checkPrometheus(t *testing.T, p *process, text string) {
	at := startPrometheus(t, strings.TrimPrefix(p.metrics, "http://"))
	panels, alerts := panelExpressions(t), alertExpressions(t, at)
	if len(panels) < 20 || len(alerts) < 15 {
		t.Fatalf("there are %d panels and %d alerts", len(panels), len(alerts))
	}
	word := regexp.MustCompile(`\b(?:stele|process|go)_\w+`)
	check := func(title, expr string) {
		for _, name := range word.FindAllString(expr, -1) {
			if !strings.Contains(text, "\n"+name+" ") && !strings.Contains(text, "\n"+name+"{") {
				t.Errorf("%s: the server does not expose %s", title, name)
			}
		}
	}
	for title, list := range panels {
		for _, expr := range list {
			check(title, expr)
			eventually(t, title+": "+expr, func() bool {
				makeTraffic(t, p)
				n, err := queryPrometheus(at, expr)
				if err != nil {
					t.Fatalf("%s: %v", title, err)
				}
				return n > 0
			})
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "watching.md"))
	if err != nil {
		t.Fatal(err)
	}
	for title, expr := range alerts {
		check(title, expr)
		if _, err := queryPrometheus(at, expr); err != nil {
			t.Errorf("%s: %v", title, err)
		}
		if !strings.Contains(string(page), "`"+title+"`") {
			t.Errorf("docs/watching.md does not name the alert %s", title)
		}
	}
}

// startPrometheus runs Prometheus with our configuration, for a server that has its metrics at an address, and returns its URL.
func startPrometheus(t *testing.T, target string) string {
	t.Helper()
	folder := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(filepath.Join("..", "..", "deploy", "stele-rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "prometheus.yml")
	config := strings.NewReplacer("127.0.0.1:9180", target, "/etc/prometheus/stele-rules.yml", rules, "15s", "1s").Replace(string(text))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "config", file).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	// Prometheus does not say which port it gets for :0, so the test asks for a free one, and again if another process was faster.
	for range 5 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		_ = listener.Close()
		var said lockedBuffer
		cmd := exec.Command("prometheus", "--config.file", file, "--storage.tsdb.path", filepath.Join(folder, "data"), "--web.listen-address", address)
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-ended
		})
		up := false
		eventually(t, "Prometheus has scraped the server: "+said.String(), func() bool {
			select {
			case err := <-ended:
				ended <- err
				return true
			default:
			}
			n, err := queryPrometheus("http://"+address, `up{job="stele"} == 1`)
			up = err == nil && n == 1
			return up
		})
		if up {
			return "http://" + address
		}
		t.Logf("Prometheus ended: %s", &said)
	}
	t.Fatal("Prometheus does not stay")
	return ""
}

// queryPrometheus returns how many series an expression has.
func queryPrometheus(at, expr string) (int, error) {
	answer, err := http.Get(at + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	var result struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.Unmarshal(body, &result); err != nil {
		return 0, fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(body))
	}
	if result.Status != "success" {
		return 0, errors.New(result.Error + " in " + expr)
	}
	return len(result.Data.Result), nil
}

// TestAlertRules: alerts fire when they should, and say which server it is.
func TestAlertRules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "stele-rules-test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(filepath.Join("..", "..", "deploy", "stele-rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllSubmatch(list, -1) {
		// One that is expected: "exp_alerts: [{" or a list on the lines that follow, not "exp_alerts: []".
		if !regexp.MustCompile(`alertname: ` + string(alert[1]) + `\n +exp_alerts:( \[\{|\n)`).Match(text) {
			t.Errorf("no test fires %s", alert[1])
		}
	}
	file := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("{rules}"), []byte(rules)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", file}} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}
