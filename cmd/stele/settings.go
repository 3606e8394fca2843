package main

import (
	"strings"
	"time"

	"github.com/stele-id/stele/scheme/purl"
)

// setting is something that the server can be told. Its one name is a key of the
// configuration file, a flag, and behind STELE_ a variable of the environment.
type setting struct {
	name    string
	kind    kind
	usual   string // the default, as it is written; "" for none
	what    string // it is for: a sentence without its full stop
	example string // as it is written
	choices []string
}

// settings is the one list. Flags, names in the environment, what is checked, and
// docs/configuration.md come from here.
var settings = []setting{
	{name: "data", kind: folderKind, usual: defaultData, example: "/var/lib/stele",
		what: "folder of the registry"},
	{name: "store", kind: storeKind, example: "postgres://stele@db1:5432,db2:5432/stele?target_session_attrs=read-write",
		what: "PostgreSQL database of the registry, instead of a folder; several servers may have the same; empty: the folder"},
	{name: "secret-key-file", kind: fileKind, example: "/etc/stele/secret.key",
		what: "file of the keys that encrypt secrets of the registry, such as private keys of zones; empty: the keys in STELE_SECRET_KEY, or the systemd credential stele-secret-key, or the file beside the folder of the registry with .key behind its name, which is made"},
	{name: "follow", kind: followKind, usual: "250ms", example: "100ms",
		what: "how often a server with a store looks for what others have written there, so that its answers are not older; a folder has one server only"},
	{name: "http", kind: addressKind, usual: ":8080", example: "127.0.0.1:8080",
		what: "address on which the public is answered; port 0 takes a free one"},
	{name: "https", kind: offAddressKind, example: ":443",
		what: "address on which the public is answered with TLS, over HTTP/1.1 and HTTP/2; empty: none"},
	{name: "tls-cert", kind: fileKind, example: "/etc/stele/tls/fullchain.pem",
		what: "file of the certificate for https and of those between it and the root; it is read again when it changes"},
	{name: "tls-key", kind: fileKind, example: "/etc/stele/tls/privkey.pem",
		what: "file of the certificate's private key, which nobody else should be able to read"},
	{name: "acme-domain", kind: domainsKind, example: "id.example.org",
		what: "names for which certificates are obtained and renewed by ACME; the CA must reach the http listener at port 80 of them, or the https listener at 443"},
	{name: "acme-email", kind: emailKind, example: "hostmaster@example.org",
		what: "address at which the CA can reach you; empty: none is given"},
	{name: "acme-ca", kind: directoryKind, usual: letsEncrypt, example: "https://ca.example.org/acme/directory",
		what: "directory of the CA to ask; whoever sets acme-domain agrees to its terms"},
	{name: "acme-root", kind: fileKind, example: "/etc/stele/tls/ca-root.pem",
		what: "file of the root certificates by which the CA itself is known, if it is a private one; empty: those of the system"},
	{name: "acme-storage", kind: offFolderKind, example: "/var/lib/stele/acme",
		what: "folder of the account at the CA, the certificates and their keys; empty: that of the registry with -acme behind its name"},
	{name: "redirect-https", kind: boolKind, usual: "false", example: "true",
		what: "send whoever asks by http to https; only health and what the CA asks is answered there"},
	{name: "hsts", kind: durationKind, usual: "0s", example: "4320h",
		what: "for how long a browser that came by https should never come by http again; 0: it is not told so"},
	{name: "trusted-proxies", kind: proxiesKind, example: "127.0.0.1,10.0.0.0/8",
		what: "addresses and networks of proxies whose word is taken on the client's address, scheme and host; empty: nobody's"},
	{name: "proxy-header", kind: choiceKind, usual: "either", example: "x-forwarded", choices: []string{"either", "forwarded", "x-forwarded"},
		what: "where these proxies tell it: in Forwarded (RFC 7239), in X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host, or in whichever is there alone"},
	{name: "dns", kind: addressesKind, example: "192.0.2.1:53,[2001:db8::1]:53",
		what: "addresses, for UDP and TCP, on which the zones of published namespaces are answered; empty: none"},
	{name: "dns-tls", kind: addressesKind, example: "192.0.2.1:853",
		what: "addresses on which the same zones are answered over TLS (RFC 7858), with the certificate of https; empty: none (over HTTPS they are answered at /dns-query, if dns and https are on)"},
	{name: "dns-identity", kind: identityKind, example: "ns1.example.org",
		what: "name by which this name server can be told from others of the same zones, for who asks for it (NSID, RFC 5001; id.server, RFC 4892); empty: it is not told"},
	{name: "dns-proxies", kind: proxiesKind, example: "127.0.0.1,10.0.0.0/8",
		what: "addresses and networks of proxies of the DNS, such as dnsdist, that tell the client's address in version 2 of the PROXY protocol, which they must then do; empty: no proxy is believed"},
	{name: "dns-tap", kind: fileKind, example: "/run/dnstap.sock",
		what: "Unix socket of a collector, such as fstrm_capture, that is told of all questions of the DNS, with the addresses of who asks, and of the answers, as dnstap; empty: no collector is told"},
	{name: "notify-source", kind: sourcesKind, example: "192.0.2.1,2001:db8::1",
		what: "address of this machine, one for IPv4 and one for IPv6, from which secondaries are sent notices of changes (NOTIFY); empty: the first of dns of that kind, or what the system chooses if dns names all addresses"},
	{name: "notify-allow", kind: proxiesKind, example: "10.1.0.0/16,127.0.0.1",
		what: "addresses and networks, beside public ones, to which secondaries may be sent notices of changes (NOTIFY), whatever an owner of a namespace says; empty: public addresses only"},
	{name: "transfer-allow", kind: proxiesKind, example: "10.1.0.0/16,127.0.0.1",
		what: "addresses and networks, beside public ones, from which secondaries may take zones, whatever an owner of a namespace says; empty: public addresses only"},
	{name: "metrics", kind: offAddressKind, example: "127.0.0.1:9180",
		what: "address of /metrics for Prometheus and of /debug/pprof, which the public should not reach; empty: none"},
	{name: "metrics-token", kind: boolKind, usual: "false", example: "true",
		what: "ask for a token there: of an administrator, with the scope metrics for /metrics and the scope admin for profiles"},
	{name: "base", kind: baseKind, example: "https://id.example.org",
		what: "the server's public address, for links to itself; empty: as a request names it, if that is a name of its certificate, the setting host, or the address of the listener, and otherwise links are relative"},
	{name: "host", kind: hostKind, example: "purl.example.org",
		what: "host as whose PURLs paths are read if a request came under no PURL host; it becomes a PURL host of the registry"},
	{name: "purl-host", kind: purlHostsKind, usual: strings.Join(purl.DefaultHosts(), ","), example: "purl.example.org,purl.org",
		what: "hosts whose http names are PURLs; they are added to those that the registry keeps (stele purl-host), for good"},
	{name: "checked", kind: shouldersKind, example: "12345/x5",
		what: "shoulders of ARKs whose names end in a check character, beside those that are known to"},
	{name: "global", kind: globalKind, example: "ark=https://n2t.net/{id}",
		what: "by scheme, the resolver to which names go that belong to no namespace here, with {id} for the name"},
	{name: "reverse", kind: boolKind, usual: "false", example: "true",
		what: "let the public ask which names point at a URL (L2Ns, L2Ls and L2C of RFC 2483)"},
	{name: "ttl", kind: durationKind, usual: "1h", example: "24h",
		what: "how long others may keep an answer where neither target nor namespace says"},
	{name: "status", kind: statusKind, usual: "302", example: "303", choices: []string{"301", "302", "303", "307", "308"},
		what: "HTTP status of redirects where neither target nor namespace says"},
	{name: "cache", kind: sizeKind, usual: "16MB", example: "512MB",
		what: "how much memory records may take that are kept there, about; 0: none"},
	{name: "redirect-cache", kind: sizeKind, usual: "512MB", example: "2GiB",
		what: "how much memory may be taken, as it is needed, to know of names where they lead without reading the registry; a name takes about 45 bytes; 0: none"},
	{name: "dns-cache", kind: sizeKind, usual: "256MB", example: "1GiB",
		what: "how much memory packed answers of the DNS may take, if dns is on"},
	{name: "dns-rate", kind: countKind, usual: "20", example: "200",
		what: "how often in a second the same answer, or the same kind of error, is sent to one network over UDP; 0: without limit"},
	{name: "dns-connections", kind: positiveKind, usual: "1000", example: "10000",
		what: "how many connections of the DNS may be open at once, over TCP and TLS; beyond that, a new one takes the place of another, of the client with most connections the one that has asked nothing for the longest time"},
	{name: "dns-per-client", kind: positiveKind, usual: "100", example: "20",
		what: "how many of them one address may have (of IPv6, a network of 64 bits)"},
	{name: "dns-signatures", kind: countKind, usual: "2000", example: "500",
		what: "how many answers of zones in the mode online are signed in a second, which protects the processors from made-up names; 0: without limit"},
	{name: "api-rate", kind: countKind, usual: "50", example: "500",
		what: "how many requests in a second one user may send to the API, and one address without a token or with a wrong one; 100 records of a batch count as one, unless an administrator sends them; 0: without limit"},
	{name: "api-burst", kind: positiveKind, usual: "200", example: "2000",
		what: "how many of them may come at once after a pause"},
	{name: "cost-rate", kind: countKind, usual: "100", example: "1000",
		what: "how much work in a second one address may ask of the resolver beside redirects, which cost nothing: a description of a record costs 1, an .info page or a memento 2, each version in a list of them 0.02; 0: without limit"},
	{name: "cost-burst", kind: positiveKind, usual: "1000", example: "5000",
		what: "how much of it may be asked for at once after a pause"},
	{name: "max-in-flight", kind: sizeKind, usual: "128MB", example: "512MB",
		what: "how much memory answers may take that clients have not read yet; beyond that, large ones are refused with status 503; 0: without limit"},
	{name: "max-in-flight-per-client", kind: sizeKind, usual: "32MB", example: "64MB",
		what: "how much of it one address may take (of IPv6, a network of 64 bits); beyond that, large answers to it are refused with status 429; 0: all"},
	{name: "grace", kind: durationKind, usual: "30s", example: "1m",
		what: "how long requests under way may take when the server is told to end"},
	{name: "drain", kind: durationKind, usual: "0s", example: "5s",
		what: "how long the server goes on accepting when it is told to end, while /readyz says 503, so that a load balancer can turn away first"},
	{name: "max-connections", kind: positiveKind, usual: "10000", example: "50000",
		what: "how many connections may be open at once; beyond that, one is closed that has waited long for a request"},
	{name: "max-per-client", kind: countKind, usual: "0", example: "100",
		what: "how many of them one address may have (of IPv6, a network of 64 bits), if it is none of trusted-proxies; 0: all, since the address may be a proxy's"},
	{name: "max-header", kind: headKind, usual: "16KiB", example: "32KiB",
		what: "how large the head of a request may be, about"},
	{name: "header-timeout", kind: timeoutKind, usual: "5s", example: "10s",
		what: "how long a client may take to send the head of a request"},
	{name: "read-timeout", kind: timeoutKind, usual: "10s", example: "30s",
		what: "how long a client may take to send a whole request"},
	{name: "write-timeout", kind: timeoutKind, usual: "30s", example: "1m",
		what: "how long a client may take to receive an answer"},
	{name: "idle-timeout", kind: timeoutKind, usual: "1m", example: "30s",
		what: "how long a connection without a request stays open"},
	{name: "log-file", kind: fileKind, example: "/var/log/stele/stele.log",
		what: "file to which log lines are appended, and which is opened anew on SIGHUP; empty: standard error"},
	{name: "log-level", kind: choiceKind, usual: "info", example: "warn", choices: []string{"debug", "info", "warn", "error"},
		what: "what is logged: this, and what is worse"},
	{name: "log-format", kind: choiceKind, usual: "text", example: "json", choices: []string{"text", "json"},
		what: "how log lines are written"},
	{name: "log-requests", kind: boolKind, usual: "false", example: "true",
		what: "log each request, without who sent it"},
	{name: "log-addresses", kind: boolKind, usual: "false", example: "true",
		what: "log the visitor's address with each request, and keep it in the audit trail; ask who cares for your visitors' privacy first"},
	{name: "audit-keep", kind: durationKind, usual: "43800h", example: "17520h",
		what: "how long entries of the audit trail are kept, five years by default; 0s: for ever. An entry says what was removed"},
	{name: "audit-file", kind: fileKind, example: "/var/log/stele/audit.jsonl",
		what: "file to which the audit trail is appended as JSON lines, and which is opened anew on SIGHUP; empty: none"},
	{name: "audit-syslog", kind: syslogKind, example: "/dev/log",
		what: "syslog daemon to which the audit trail is sent as RFC 5424 says: the path of its socket, udp://HOST:PORT or tcp://HOST:PORT; empty: none"},
}

// serveConfig is what the settings come to.
type serveConfig struct {
	Data           string            `koanf:"data"`
	Store          string            `koanf:"store"`
	SecretKeyFile  string            `koanf:"secret-key-file"`
	Follow         time.Duration     `koanf:"follow"`
	HTTP           string            `koanf:"http"`
	HTTPS          string            `koanf:"https"`
	TLSCert        string            `koanf:"tls-cert"`
	TLSKey         string            `koanf:"tls-key"`
	ACMEDomains    []string          `koanf:"acme-domain"`
	ACMEEmail      string            `koanf:"acme-email"`
	ACMECA         string            `koanf:"acme-ca"`
	ACMERoot       string            `koanf:"acme-root"`
	ACMEStorage    string            `koanf:"acme-storage"`
	RedirectHTTPS  bool              `koanf:"redirect-https"`
	HSTS           time.Duration     `koanf:"hsts"`
	TrustedProxies []string          `koanf:"trusted-proxies"`
	ProxyHeader    string            `koanf:"proxy-header"`
	DNS            []string          `koanf:"dns"`
	DNSTLS         []string          `koanf:"dns-tls"`
	DNSIdentity    string            `koanf:"dns-identity"`
	DNSProxies     []string          `koanf:"dns-proxies"`
	DNSTap         string            `koanf:"dns-tap"`
	NotifySource   []string          `koanf:"notify-source"`
	NotifyAllow    []string          `koanf:"notify-allow"`
	TransferAllow  []string          `koanf:"transfer-allow"`
	Metrics        string            `koanf:"metrics"`
	MetricsToken   bool              `koanf:"metrics-token"`
	Base           string            `koanf:"base"`
	Host           string            `koanf:"host"`
	PURLHosts      []string          `koanf:"purl-host"`
	Checked        []string          `koanf:"checked"`
	Global         map[string]string `koanf:"global"`
	Reverse        bool              `koanf:"reverse"`
	TTL            time.Duration     `koanf:"ttl"`
	Status         int               `koanf:"status"`
	Cache          int64             `koanf:"cache"`
	RedirectCache  int64             `koanf:"redirect-cache"`
	DNSCache       int64             `koanf:"dns-cache"`
	DNSRate        int               `koanf:"dns-rate"`
	DNSConnections int               `koanf:"dns-connections"`
	DNSPerClient   int               `koanf:"dns-per-client"`
	DNSSignatures  int               `koanf:"dns-signatures"`
	APIRate        int               `koanf:"api-rate"`
	APIBurst       int               `koanf:"api-burst"`
	CostRate       int               `koanf:"cost-rate"`
	CostBurst      int               `koanf:"cost-burst"`
	MaxInFlight    int64             `koanf:"max-in-flight"`
	MaxInFlightOne int64             `koanf:"max-in-flight-per-client"`
	Grace          time.Duration     `koanf:"grace"`
	Drain          time.Duration     `koanf:"drain"`
	MaxConnections int               `koanf:"max-connections"`
	MaxPerClient   int               `koanf:"max-per-client"`
	MaxHeader      int64             `koanf:"max-header"`
	HeaderTimeout  time.Duration     `koanf:"header-timeout"`
	ReadTimeout    time.Duration     `koanf:"read-timeout"`
	WriteTimeout   time.Duration     `koanf:"write-timeout"`
	IdleTimeout    time.Duration     `koanf:"idle-timeout"`
	LogFile        string            `koanf:"log-file"`
	LogLevel       string            `koanf:"log-level"`
	LogFormat      string            `koanf:"log-format"`
	LogRequests    bool              `koanf:"log-requests"`
	LogAddresses   bool              `koanf:"log-addresses"`
	AuditKeep      time.Duration     `koanf:"audit-keep"`
	AuditFile      string            `koanf:"audit-file"`
	AuditSyslog    string            `koanf:"audit-syslog"`
}

// letsEncrypt is the CA that is asked if nobody says otherwise.
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

// environmentPrefix begins the names of our variables.
const environmentPrefix = "STELE_"

// variable returns the name of the setting in the environment.
func (s *setting) variable() string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// findSetting returns the setting of that name, or nil.
func findSetting(name string) *setting {
	for i := range settings {
		if settings[i].name == name {
			return &settings[i]
		}
	}
	return nil
}

// nearestSetting returns the name of the setting that a mistyped one may mean, or "".
func nearestSetting(name string) string {
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}
	return nearest(strings.ToLower(strings.ReplaceAll(name, "_", "-")), names)
}

// nearest returns the word that the fewest mistakes turn into the text, "" if it
// takes more than a third of the text's letters.
func nearest(text string, words []string) (found string) {
	best := max(1, len(text)/3) + 1
	for _, word := range words {
		if d := distance(text, word); d < best {
			best, found = d, word
		}
	}
	return found
}

// distance counts how many letters must be put in, taken out or changed to turn one
// text into another (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
