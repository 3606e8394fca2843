package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestSettings compares the list of settings with the struct that they fill, and
// tries their defaults and examples.
func TestSettings(t *testing.T) {
	fields := map[string]reflect.Type{}
	for f := range reflect.TypeFor[Values]().Fields() {
		fields[f.Tag.Get("koanf")] = f.Type
	}
	for i := range settings {
		s := &settings[i]
		if fields[s.Name] == nil {
			t.Errorf("%s has no field", s.Name)
		}
		delete(fields, s.Name)
		if _, err := s.Read(s.Usual); err != nil {
			t.Errorf("%s: its default: %v", s.Name, err)
		}
		if s.Example == "" || s.What == "" || s.kind.word == "" || s.InFile(s.Example) == "" {
			t.Errorf("%s is not documented", s.Name)
		}
		if strings.HasSuffix(s.What, ".") || strings.Contains(s.What, "|") {
			t.Errorf("%s: %q", s.Name, s.What)
		}
	}
	if len(fields) > 0 {
		t.Errorf("fields without settings: %v", fields)
	}
}

// TestSettingPlaces sets each setting to its example in each place, and finds the
// same value.
func TestSettingPlaces(t *testing.T) {
	for i := range settings {
		s := &settings[i]
		want, err := s.Read(s.Example)
		if err != nil {
			t.Errorf("%s: its example: %v", s.Name, err)
			continue
		}
		more := needs[s.Name]
		file := writeConfig(t, s.InFile(s.Example)+"\n"+more)
		for place, c := range map[string]*Config{
			file:          Load(file, nil, nil),
			"environment": Load(writeConfig(t, more), []string{s.Variable() + "=" + s.Example}, nil),
			"flag":        Load(writeConfig(t, more), nil, map[string]any{s.Name: s.Example}),
		} {
			if len(c.Problems)+len(c.Warnings) > 0 {
				t.Errorf("%s by %s: %v %v", s.Name, place, c.Problems, c.Warnings)
			}
			if got := c.values[s.Name]; !reflect.DeepEqual(got, want) || c.origin[s.Name] != place {
				t.Errorf("%s by %s: got %v of %s, want %v", s.Name, place, got, c.origin[s.Name], want)
			}
		}
	}
}

// needs maps settings to those that they require.
var needs = map[string]string{
	"host":                `purl-host = ["purl.example.org"]`,
	"https":               `acme-domain = ["id.example.org"]`,
	"tls-cert":            "https = ':443'\ntls-key = 'key.pem'",
	"tls-key":             "https = ':443'\ntls-cert = 'cert.pem'",
	"acme-domain":         "https = ':443'",
	"dns-tls":             "dns = '192.0.2.1:53'\ntls-cert = 'cert.pem'\ntls-key = 'key.pem'",
	"mail-server":         "base = 'https://id.example.org'\nmail-from = 'ids@example.org'",
	"mail-user":           "base = 'https://id.example.org'\nmail-server = 'mail.example.org:587'\nmail-from = 'ids@example.org'\nmail-password-file = '/etc/stele/mail.secret'",
	"mail-password-file":  "base = 'https://id.example.org'\nmail-server = 'mail.example.org:587'\nmail-from = 'ids@example.org'\nmail-user = 'stele'",
	"mail-from":           "base = 'https://id.example.org'\nmail-server = 'mail.example.org:587'",
	"mail-reply-to":       "base = 'https://id.example.org'\nmail-server = 'mail.example.org:587'\nmail-from = 'ids@example.org'",
	"mail-root":           "base = 'https://id.example.org'\nmail-server = 'mail.example.org:587'\nmail-from = 'ids@example.org'",
	"proxy-user-header":   "trusted-proxies = ['127.0.0.1']",
	"proxy-groups-header": "trusted-proxies = ['127.0.0.1']\nproxy-user-header = 'Remote-User'",
	"proxy-make-users":    "trusted-proxies = ['127.0.0.1']\nproxy-user-header = 'Remote-User'",
	"issuer":              "base = 'https://id.example.org'\nissuer-client.campus = 'stele'\nissuer-secret-file.campus = 'secret'",
	"issuer-label":        oneIssuer,
	"issuer-client":       "base = 'https://id.example.org'\nissuer.campus = 'https://login.example.org'\nissuer-secret-file.campus = 'secret'",
	"issuer-secret-file":  "base = 'https://id.example.org'\nissuer.campus = 'https://login.example.org'\nissuer-client.campus = 'stele'",
	"issuer-scopes":       oneIssuer,
	"issuer-groups-claim": oneIssuer,
	"issuer-group":        oneIssuer + "\nissuer-groups-claim.campus = 'groups'",
	"issuer-enter":        oneIssuer,
	"escrow":              "escrow-credentials.vault = '/etc/stele/vault.key'",
	"escrow-prefixes":     "escrow.vault = 'file:///mnt/vault'",
	"escrow-every":        "escrow.vault = 'file:///mnt/vault'",
	"escrow-credentials":  "escrow.vault = 'file:///mnt/vault'",
	"redirect-https":      "trusted-proxies = ['127.0.0.1']\nbase = 'https://id.example.org'",
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stele.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPrecedence: flags win over the environment, that over the file, and the file
// over the defaults.
func TestPrecedence(t *testing.T) {
	file := writeConfig(t, "http = ':1'\nttl = '1s'\ngrace = '1s'\nglobal.ark = 'https://a.example/{id}'\nglobal.hdl = 'https://a.example/{id}'\n")
	environ := []string{"STELE_TTL=2s", "STELE_GRACE=2s", "STELE_GLOBAL=hdl=https://b.example/{id} urn=https://b.example/{id}", "OTHER=x"}
	c := Load(file, environ, map[string]any{"grace": "3s", "global": "urn=https://c.example/{id}"})
	if c.Problems != nil {
		t.Fatal(c.Problems)
	}
	got := c.Values
	if got.HTTP != ":1" || got.TTL != 2*time.Second || got.Grace != 3*time.Second || got.Status != 302 || got.Cache != 16e6 {
		t.Errorf("got %+v", got)
	}
	want := map[string]string{"ark": "https://a.example/{id}", "hdl": "https://b.example/{id}", "urn": "https://c.example/{id}"}
	if !reflect.DeepEqual(got.Global, want) {
		t.Errorf("the resolvers are %v, want %v", got.Global, want)
	}
}

// TestSettingRefusals tries what is not a value of its kind.
func TestSettingRefusals(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  []any
	}{
		{"data", []any{"", int64(1), true}},
		{"http", []any{"", "8080", "localhost", "a b:80", "localhost:http", ":65536", ":-1", "[::1:80", "-_-:80", int64(8080)}},
		{"base", []any{"id.example.org", "ftp://a.example", "https://", "https://u@a.example", "https://a.example/?x", "https://a.example/#x", "https://a.example/path", "javascript:alert(1)"}},
		{"https", []any{"443", "localhost", int64(443)}},
		{"tls-cert", []any{"/etc/", "a\x00b", int64(1)}},
		{"acme-domain", []any{"*.example.org", "192.0.2.1", []any{"a b"}, "example.org.", []any{int64(1)}}},
		{"acme-email", []any{"me", "Me <me@example.org>", "a@b@c"}},
		{"mail-digest", []any{"monday", "7:00", "Monday 07:00", "monday 7:00", "monday 24:00", "day 07:00", int64(1)}},
		{"acme-ca", []any{"", "http://ca.example.org/dir", "ca.example.org", "https://u@ca.example.org/"}},
		{"hsts", []any{"1", "-1s"}},
		{"trusted-proxies", []any{"proxy.example", "10.0.0.1/8", "0.0.0.0/0", []any{"::/0"}}},
		{"proxy-header", []any{"", "x-real-ip"}},
		{"host", []any{"a b", "https://a.example", "..", "a\nb"}},
		{"purl-host", []any{"-", []any{int64(1)}, []any{"a b"}, true, map[string]any{}}},
		{"checked", []any{"x5", []any{"12345/x5", "?"}}},
		{"global", []any{"ark", "ark=", "ark=https://n2t.net/", "arc=https://n2t.net/{id}", "ark=https://{id}/", "ark=file:///{id}", map[string]any{"ark": int64(1)}, []any{}}},
		{"reverse", []any{"perhaps", "", int64(1), []any{}}},
		{"ttl", []any{"1", "1 day", "-1s", "99999h99999h", int64(30), "1000000h"}},
		{"status", []any{"200", "304", int64(404), "x"}},
		{"cache", []any{"", "lots", "1TB", "-1MB", "1.5MB", "9999999999999GB", "1099511627775GB", int64(64)}},
		{"max-connections", []any{"", "-1", "1e3", "99999999999", int64(-1)}},
		{"max-header", []any{"0", "1KiB", "2MB", "x"}},
		{"idle-timeout", []any{"0s", "0", "-1s"}},
		{"follow", []any{"0s", "1ms", "11s", "-1s"}},
		{"log-level", []any{"", "INFO", "chatty"}},
	} {
		for _, bad := range tt.bad {
			if got, err := Find(tt.name).Read(bad); err == nil {
				t.Errorf("%s: %#v is read as %#v", tt.name, bad, got)
			}
		}
	}
}

// TestTogether tries settings that are wrong only in combination.
func TestTogether(t *testing.T) {
	for text, want := range map[string]string{
		"https = ':443'":                 "https: there is no certificate for it",
		"https = ':443'\ntls-cert = 'a'": "tls-cert: the certificate is of no use without its key",
		"https = ':443'\ntls-key = 'a'":  "tls-key: the key is of no use without its certificate",
		"tls-cert = 'a'\ntls-key = 'b'":  "tls-cert: there is nothing that it is for",
		"acme-domain = ['a.example']":    "acme-domain: there is nothing that the certificate is for",
		"https = ':443'\ntls-cert = 'a'\ntls-key = 'b'\nacme-domain = ['a.example']": "acme-domain: the certificate comes from tls-cert",
		"redirect-https = true":                                                           "redirect-https: there is no https to redirect clients to",
		"redirect-https = true\nbase = 'https://a.example'":                               "redirect-https: the server can't recognise requests",
		"https = ':8080'\nacme-domain = ['a.example']":                                    "https: :8080 is the address for the public too",
		"https = ':443'\nacme-domain = ['a.example']\nacme-storage = 'stele-data/acme'":   "acme-storage: this is inside the folder of the registry",
		"https = ':443'\nacme-domain = ['a.example']\nacme-storage = 'stele-data-acme'":   "",
		"https = ':443'\nacme-domain = ['a.example']\ndata = '/a/b'\nacme-storage = '/a'": "",
		"https = '127.0.0.1:0'\nhttp = '127.0.0.1:0'\ntls-cert = 'a'\ntls-key = 'b'":      "",
	} {
		file := writeConfig(t, text)
		c := Load(file, nil, nil)
		var got []string
		for _, q := range c.Problems {
			got = append(got, q.String())
		}
		all := strings.Join(got, "\n")
		if want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%q: %q, want %q", text, all, want)
		}
	}
	c := Load(writeConfig(t, "data = '/var/lib/stele/registry/'"), nil, nil)
	if got := c.CertificateFolder(); got != "/var/lib/stele/registry-acme" {
		t.Errorf("certificates are in %s", got)
	}
}

func TestShortForms(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", 10 * time.Second: "10s", 0: "0s", 1500 * time.Millisecond: "1.5s",
		time.Hour + time.Second: "1h0m1s", 20 * time.Hour: "20h",
	} {
		got := shortDuration(d)
		if again, err := time.ParseDuration(got); got != want || err != nil || again != d {
			t.Errorf("%s is written %s, want %s", d, got, want)
		}
	}
	for _, text := range []string{"0", "1", "64MB", "1GiB", "3KiB", "7kB", "1000001"} {
		n, err := ParseSize(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := shortSize(n); got != text {
			t.Errorf("%s is written %s", text, got)
		}
	}
}

// TestConfigurationPage: docs/configuration.md has the list of settings as the
// program has it, and the example as it is in its file.
func TestConfigurationPage(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../docs/examples/stele.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```toml\n"+string(example)+"```\n") {
		t.Error("docs/configuration.md has another example than docs/examples/stele.toml")
	}
	if table := Markdown(); !strings.Contains(string(page), table) {
		t.Errorf("docs/configuration.md has not the table that 'stele config list --markdown' prints:\n%s", table)
	}
}

// TestText: what Text prints is read again as the same configuration.
func TestText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stele.toml")
	if err := os.WriteFile(file, []byte("http = \":8080\"\nchecked = [\"12345/x5\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Load(file, nil, nil)
	text := c.Text()
	if !strings.Contains(text, "http = \":8080\"  # "+c.Origin("http")+"\n") || !strings.Contains(text, "  # "+Default+"\n") {
		t.Error(text)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	again := Load(file, nil, nil)
	if len(again.Problems) > 0 || !reflect.DeepEqual(again.Object(), c.Object()) {
		t.Errorf("%v: %v, want %v", again.Problems, again.Object(), c.Object())
	}
}
