package config

import (
	"strings"
	"time"

	"github.com/stele-id/stele/internal/spelling"
	"github.com/stele-id/stele/scheme/purl"
)

// Setting is an option of the server. Its one name is a key of the configuration file, a
// flag, and after STELE_ a variable of the environment.
type Setting struct {
	Name    string
	Usual   string // the default, as it is written; "" for none
	What    string // purpose: a sentence without its full stop
	Example string // as it is written
	Choices []string

	kind kind
}

// All returns the settings. The caller must not change them.
func All() []Setting { return settings }

// DefaultData is the folder of the registry if no source names another.
const DefaultData = "stele-data"

// settings is the one list. Flags, environment variables, checks, and
// docs/configuration.md come from here.
var settings = []Setting{
	{Name: "data", kind: folderKind, Usual: DefaultData, Example: "/var/lib/stele",
		What: "folder of the registry"},
	{Name: "store", kind: storeKind, Example: "postgres://stele@db1:5432,db2:5432/stele?target_session_attrs=read-write",
		What: "PostgreSQL database of the registry, instead of a folder; several servers may have the same; empty: the folder"},
	{Name: "secret-key-file", kind: fileKind, Example: "/etc/stele/secret.key",
		What: "file of the keys that encrypt secrets of the registry, such as private keys of zones; empty: the keys in STELE_SECRET_KEY, or the systemd credential stele-secret-key, or the file beside the folder of the registry with .key appended to its name, which is made"},
	{Name: "follow", kind: followKind, Usual: "250ms", Example: "100ms",
		What: "how often a server with a store looks for what others have written there, so that its answers are not older; a folder has one server only"},
	{Name: "http", kind: addressKind, Usual: ":8080", Example: "127.0.0.1:8080",
		What: "address on which the public is answered; port 0 takes a free one"},
	{Name: "https", kind: offAddressKind, Example: ":443",
		What: "address on which the public is answered with TLS, over HTTP/1.1 and HTTP/2; empty: none"},
	{Name: "tls-cert", kind: fileKind, Example: "/etc/stele/tls/fullchain.pem",
		What: "file of the certificate for https and of those between it and the root; it is read again when it changes"},
	{Name: "tls-key", kind: fileKind, Example: "/etc/stele/tls/privkey.pem",
		What: "file of the certificate's private key, which only the server should be able to read"},
	{Name: "acme-domain", kind: domainsKind, Example: "id.example.org",
		What: "names for which certificates are obtained and renewed by ACME; the CA must reach the http listener at port 80 of them, or the https listener at 443"},
	{Name: "acme-email", kind: emailKind, Example: "hostmaster@example.org",
		What: "address at which the CA can reach you; empty: none is given"},
	{Name: "acme-ca", kind: directoryKind, Usual: LetsEncrypt, Example: "https://ca.example.org/acme/directory",
		What: "directory of the CA to ask; setting acme-domain accepts its terms"},
	{Name: "acme-root", kind: fileKind, Example: "/etc/stele/tls/ca-root.pem",
		What: "file of the root certificates by which the CA itself is known, if it is a private one; empty: those of the system"},
	{Name: "acme-storage", kind: offFolderKind, Example: "/var/lib/stele/acme",
		What: "folder of the account at the CA, the certificates and their keys; empty: that of the registry with -acme appended to its name"},
	{Name: "redirect-https", kind: boolKind, Usual: "false", Example: "true",
		What: "redirect clients from http to https; only health and what the CA asks is answered there"},
	{Name: "hsts", kind: durationKind, Usual: "0s", Example: "4320h",
		What: "for how long a browser that came by https should never come by http again; 0: it is not told so"},
	{Name: "trusted-proxies", kind: proxiesKind, Example: "127.0.0.1,10.0.0.0/8",
		What: "addresses and networks of proxies whose word is taken on the client's address, scheme and host; empty: no proxy's"},
	{Name: "proxy-header", kind: choiceKind, Usual: "either", Example: "x-forwarded", Choices: []string{"either", "forwarded", "x-forwarded"},
		What: "where these proxies tell it: in Forwarded (RFC 7239), in X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host, or in whichever is there alone"},
	{Name: "dns", kind: addressesKind, Example: "192.0.2.1:53,[2001:db8::1]:53",
		What: "addresses, for UDP and TCP, on which the zones of published namespaces are answered; empty: none"},
	{Name: "dns-tls", kind: addressesKind, Example: "192.0.2.1:853",
		What: "addresses on which the same zones are answered over TLS (RFC 7858), with the certificate of https; empty: none (over HTTPS they are answered at /dns-query, if dns and https are on)"},
	{Name: "dns-identity", kind: identityKind, Example: "ns1.example.org",
		What: "name by which this name server can be told from others of the same zones, for who asks for it (NSID, RFC 5001; id.server, RFC 4892); empty: it is not told"},
	{Name: "dns-proxies", kind: proxiesKind, Example: "127.0.0.1,10.0.0.0/8",
		What: "addresses and networks of proxies of the DNS, such as dnsdist, that tell the client's address in version 2 of the PROXY protocol, which they must then do; empty: no proxy is believed"},
	{Name: "dns-tap", kind: fileKind, Example: "/run/dnstap.sock",
		What: "Unix socket of a collector, such as fstrm_capture, that is told of all questions of the DNS, with the addresses of who asks, and of the answers, as dnstap; empty: no collector is told"},
	{Name: "notify-source", kind: sourcesKind, Example: "192.0.2.1,2001:db8::1",
		What: "address of this machine, one for IPv4 and one for IPv6, from which secondaries are sent notices of changes (NOTIFY); empty: the first of dns of that kind, or what the system chooses if dns names all addresses"},
	{Name: "notify-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, beside public ones, to which secondaries may be sent notices of changes (NOTIFY), whatever an owner of a namespace says; empty: public addresses only"},
	{Name: "transfer-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, beside public ones, from which secondaries may take zones, whatever an owner of a namespace says; empty: public addresses only"},
	{Name: "metrics", kind: offAddressKind, Example: "127.0.0.1:9180",
		What: "address of /metrics for Prometheus and of /debug/pprof, which the public should not reach; empty: none"},
	{Name: "metrics-token", kind: boolKind, Usual: "false", Example: "true",
		What: "ask for a token there: of an administrator, with the scope metrics for /metrics and the scope admin for profiles"},
	{Name: "base", kind: baseKind, Example: "https://id.example.org",
		What: "the server's public address, for links to itself; empty: as a request names it, if that is a name of its certificate, the setting host, or the address of the listener, and otherwise links are relative"},
	{Name: "host", kind: hostKind, Example: "purl.example.org",
		What: "host as whose PURLs paths are read if a request came under no PURL host; it becomes a PURL host of the registry"},
	{Name: "purl-host", kind: purlHostsKind, Usual: strings.Join(purl.DefaultHosts(), ","), Example: "purl.example.org,purl.org",
		What: "hosts whose http names are PURLs; they are added to those that the registry keeps (stele purl-host), for good"},
	{Name: "checked", kind: shouldersKind, Example: "12345/x5",
		What: "shoulders of ARKs whose names end in a check character, beside those that are known to"},
	{Name: "global", kind: globalKind, Example: "ark=https://n2t.net/{id}",
		What: "by scheme, the resolver to which names go that belong to no namespace here, with {id} for the name"},
	{Name: "reverse", kind: boolKind, Usual: "false", Example: "true",
		What: "let the public ask which names point at a URL (L2Ns, L2Ls and L2C of RFC 2483)"},
	{Name: "ttl", kind: durationKind, Usual: "1h", Example: "24h",
		What: "how long others may keep an answer where neither target nor namespace says"},
	{Name: "status", kind: statusKind, Usual: "302", Example: "303", Choices: []string{"301", "302", "303", "307", "308"},
		What: "HTTP status of redirects where neither target nor namespace says"},
	{Name: "cache", kind: sizeKind, Usual: "16MB", Example: "512MB",
		What: "how much memory records may take that are kept there, about; 0: none"},
	{Name: "redirect-cache", kind: sizeKind, Usual: "512MB", Example: "2GiB",
		What: "how much memory may be taken, as it is needed, to know of names where they lead without reading the registry; a name takes about 45 bytes; 0: none"},
	{Name: "dns-cache", kind: sizeKind, Usual: "256MB", Example: "1GiB",
		What: "how much memory packed answers of the DNS may take, if dns is on"},
	{Name: "dns-rate", kind: countKind, Usual: "20", Example: "200",
		What: "how often in a second the same answer, or the same kind of error, is sent to one network over UDP; 0: without limit"},
	{Name: "dns-connections", kind: positiveKind, Usual: "1000", Example: "10000",
		What: "how many connections of the DNS may be open at once, over TCP and TLS; beyond that, a new one takes the place of another, of the client with most connections the one that has asked nothing for the longest time"},
	{Name: "dns-per-client", kind: positiveKind, Usual: "100", Example: "20",
		What: "how many of them one address may have (of IPv6, a network of 64 bits)"},
	{Name: "dns-signatures", kind: countKind, Usual: "2000", Example: "500",
		What: "how many answers of zones in the mode online are signed in a second, which protects the processors from made-up names; 0: without limit"},
	{Name: "api-rate", kind: countKind, Usual: "50", Example: "500",
		What: "how many requests in a second one user may send to the API, and one address without a token or with a wrong one; 100 records of a batch count as one, unless an administrator sends them; 0: without limit"},
	{Name: "api-burst", kind: positiveKind, Usual: "200", Example: "2000",
		What: "how many of them may come at once after a pause"},
	{Name: "cost-rate", kind: countKind, Usual: "100", Example: "1000",
		What: "how much work in a second one address may ask of the resolver beside redirects, which cost nothing: a description of a record costs 1, an .info page or a memento 2, each version in a list of them 0.02; 0: without limit"},
	{Name: "cost-burst", kind: positiveKind, Usual: "1000", Example: "5000",
		What: "how much of it may be asked for at once after a pause"},
	{Name: "max-in-flight", kind: sizeKind, Usual: "128MB", Example: "512MB",
		What: "how much memory answers may take that clients have not read yet; beyond that, large ones are refused with status 503; 0: without limit"},
	{Name: "max-in-flight-per-client", kind: sizeKind, Usual: "32MB", Example: "64MB",
		What: "how much of it one address may take (of IPv6, a network of 64 bits); beyond that, large answers to it are refused with status 429; 0: all"},
	{Name: "grace", kind: durationKind, Usual: "30s", Example: "1m",
		What: "how long requests under way may take when the server is told to end"},
	{Name: "drain", kind: durationKind, Usual: "0s", Example: "5s",
		What: "how long the server goes on accepting when it is told to end, while /readyz says 503, so that a load balancer can turn away first"},
	{Name: "max-connections", kind: positiveKind, Usual: "10000", Example: "50000",
		What: "how many connections may be open at once; beyond that, one is closed that has waited long for a request"},
	{Name: "max-per-client", kind: countKind, Usual: "0", Example: "100",
		What: "how many of them one address may have (of IPv6, a network of 64 bits), if it is none of trusted-proxies; 0: all, since the address may be a proxy's"},
	{Name: "max-header", kind: headKind, Usual: "16KiB", Example: "32KiB",
		What: "how large the head of a request may be, about"},
	{Name: "header-timeout", kind: timeoutKind, Usual: "5s", Example: "10s",
		What: "how long a client may take to send the head of a request"},
	{Name: "read-timeout", kind: timeoutKind, Usual: "10s", Example: "30s",
		What: "how long a client may take to send a whole request"},
	{Name: "write-timeout", kind: timeoutKind, Usual: "30s", Example: "1m",
		What: "how long a client may take to receive an answer"},
	{Name: "idle-timeout", kind: timeoutKind, Usual: "1m", Example: "30s",
		What: "how long a connection without a request stays open"},
	{Name: "log-file", kind: fileKind, Example: "/var/log/stele/stele.log",
		What: "file to which log lines are appended, and which is opened anew on SIGHUP; empty: standard error"},
	{Name: "log-level", kind: choiceKind, Usual: "info", Example: "warn", Choices: []string{"debug", "info", "warn", "error"},
		What: "what is logged: this, and what is worse"},
	{Name: "log-format", kind: choiceKind, Usual: "text", Example: "json", Choices: []string{"text", "json"},
		What: "how log lines are written"},
	{Name: "log-requests", kind: boolKind, Usual: "false", Example: "true",
		What: "log each request, without who sent it"},
	{Name: "log-addresses", kind: boolKind, Usual: "false", Example: "true",
		What: "log the visitor's address with each request, and keep it in the audit trail; ask who cares for your visitors' privacy first"},
	{Name: "audit-keep", kind: durationKind, Usual: "43800h", Example: "17520h",
		What: "how long entries of the audit trail are kept, five years by default; 0s: for ever. An entry says what was removed"},
	{Name: "audit-file", kind: fileKind, Example: "/var/log/stele/audit.jsonl",
		What: "file to which the audit trail is appended as JSON lines, and which is opened anew on SIGHUP; empty: none"},
	{Name: "audit-syslog", kind: syslogKind, Example: "/dev/log",
		What: "syslog daemon to which the audit trail is sent as RFC 5424 says: the path of its socket, udp://HOST:PORT or tcp://HOST:PORT; empty: none"},
}

// Values are the values of all settings.
type Values struct {
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

// LetsEncrypt is the CA that is asked if no source names another.
const LetsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

// environmentPrefix begins the names of our variables.
const environmentPrefix = "STELE_"

// Variable returns the name of the setting in the environment.
func (s *Setting) Variable() string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Find returns the setting of that name, or nil.
func Find(name string) *Setting {
	for i := range settings {
		if settings[i].Name == name {
			return &settings[i]
		}
	}
	return nil
}

// nearestSetting returns the name of the setting that a mistyped one may mean, or "".
func nearestSetting(name string) string {
	var names []string
	for _, s := range settings {
		names = append(names, s.Name)
	}
	return spelling.Nearest(strings.ToLower(strings.ReplaceAll(name, "_", "-")), names)
}
