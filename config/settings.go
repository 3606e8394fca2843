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
		What: "PostgreSQL database of the registry, instead of a folder; several servers can share it; empty: the folder"},
	{Name: "secret-key-file", kind: fileKind, Example: "/etc/stele/secret.key",
		What: "file of the keys that encrypt secrets of the registry, such as the private keys of zones; empty: the keys in STELE_SECRET_KEY, or the systemd credential stele-secret-key, or the file beside the folder of the registry with .key appended to its name, which the server makes"},
	{Name: "follow", kind: followKind, Usual: "250ms", Example: "100ms",
		What: "how often a server that uses a database checks for changes of other servers, so that its answers are current; a folder has one server only"},
	{Name: "http", kind: addressKind, Usual: ":8080", Example: "127.0.0.1:8080",
		What: "address of the HTTP listener; port 0 chooses a free port"},
	{Name: "https", kind: offAddressKind, Example: ":443",
		What: "address of the HTTPS listener (TLS, HTTP/1.1 and HTTP/2); empty: none"},
	{Name: "tls-cert", kind: fileKind, Example: "/etc/stele/tls/fullchain.pem",
		What: "file of the certificate for https, with the intermediate certificates; the server reads it again when it changes"},
	{Name: "tls-key", kind: fileKind, Example: "/etc/stele/tls/privkey.pem",
		What: "file of the certificate's private key, which only the server should be able to read"},
	{Name: "acme-domain", kind: domainsKind, Example: "id.example.org",
		What: "host names for which the server obtains and renews certificates by ACME; the CA must reach the http listener at their port 80, or the https listener at port 443"},
	{Name: "acme-email", kind: emailKind, Example: "hostmaster@example.org",
		What: "contact address for the CA; empty: none"},
	{Name: "acme-ca", kind: directoryKind, Usual: LetsEncrypt, Example: "https://ca.example.org/acme/directory",
		What: "ACME directory of the CA; setting acme-domain accepts its terms"},
	{Name: "acme-root", kind: fileKind, Example: "/etc/stele/tls/ca-root.pem",
		What: "file of the root certificates that authenticate the CA, if it is private; empty: those of the system"},
	{Name: "acme-storage", kind: offFolderKind, Example: "/var/lib/stele/acme",
		What: "folder of the CA account, the certificates and their keys; empty: the folder of the registry with -acme appended to its name"},
	{Name: "search-index", kind: offFolderKind, Example: "/var/cache/stele/search",
		What: "folder of the index with which records are found by words; it is made anew if it is missing or damaged, and needs no backup; several servers never share one; empty: that of the registry with -search appended to its name; the records of a registry in a database can be searched only if it is given"},
	{Name: "redirect-https", kind: boolKind, Usual: "false", Example: "true",
		What: "redirect clients from http to https; over http the server answers only health checks and requests of the CA"},
	{Name: "hsts", kind: durationKind, Usual: "0s", Example: "4320h",
		What: "how long browsers must use https only (Strict-Transport-Security); 0: the server does not send the header"},
	{Name: "trusted-proxies", kind: proxiesKind, Example: "127.0.0.1,10.0.0.0/8",
		What: "addresses and networks of proxies that the server trusts for the client's address, scheme and host; empty: none"},
	{Name: "proxy-header", kind: choiceKind, Usual: "either", Example: "x-forwarded", Choices: []string{"either", "forwarded", "x-forwarded"},
		What: "header that these proxies set: Forwarded (RFC 7239), or X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host, or either, if a request has only one of the two"},
	{Name: "proxy-user-header", kind: headerKind, Example: "Remote-User",
		What: "header in which these proxies send the name of a user whom they have signed in, such as Authelia and Shibboleth do; the proxies must remove it from requests of clients; empty: none"},
	{Name: "proxy-groups-header", kind: headerKind, Example: "Remote-Groups",
		What: "header in which these proxies send the groups of that user, with commas or semicolons between them; the proxies must remove it from requests of clients; empty: none"},
	{Name: "proxy-make-users", kind: boolKind, Usual: "false", Example: "true",
		What: "make a user whom these proxies have signed in and who does not exist yet"},
	{Name: "issuer", kind: issuerKind, Example: "campus=https://login.example.org",
		What: "OpenID provider through which users sign in at the desk: a short name of your choice, and the URL of the issuer as the provider writes it; needs base, issuer-client and issuer-secret-file; register BASE/.desk/issuer/NAME/back there as the redirect URI"},
	{Name: "issuer-label", kind: issuerTextKind, Example: "campus=Campus",
		What: "name of each issuer for people, on the sign-in page; empty: the short name"},
	{Name: "issuer-client", kind: issuerTextKind, Example: "campus=stele",
		What: "client ID that the provider of each issuer gave to this server"},
	{Name: "issuer-secret-file", kind: issuerFileKind, Example: "campus=/etc/stele/campus.secret",
		What: "file of the client secret of each issuer, which only the server should be able to read"},
	{Name: "issuer-scopes", kind: issuerTextKind, Example: "campus=profile,groups",
		What: "scopes that the server asks for beside openid, with commas between them"},
	{Name: "issuer-groups-claim", kind: issuerTextKind, Example: "campus=groups",
		What: "claim of each issuer that lists the groups of a person; a dot leads into objects, as in realm_access.roles; empty: none"},
	{Name: "issuer-group", kind: issuerGroupKind, Example: "campus/curators=library-staff",
		What: "groups that follow from the groups claim: ISSUER/GROUP=VALUE makes people with this value members of the group, at each sign-in, and people without it not"},
	{Name: "issuer-enter", kind: issuerEnterKind, Example: "campus=claim:affiliation=staff",
		What: "who may enter through each issuer: none (people whose account is linked to a user), invited (also people with a one-time link, which links the account), or claim:NAME=VALUE (also people with this value in a claim, for whom a user is made); empty: invited"},
	{Name: "issuer-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, at which issuers may be; empty: public addresses only"},
	{Name: "mail-server", kind: offAddressKind, Example: "mail.example.org:587",
		What: "mail server (SMTP) through which the server sends invitations, sign-in links and digests; needs mail-from and base; empty: no mail is sent"},
	{Name: "mail-security", kind: choiceKind, Usual: "starttls", Example: "tls", Choices: []string{"starttls", "tls", "none"},
		What: "encryption of the connection to the mail server: starttls (usual at port 587; mail is not sent if the server can't), tls (from the first byte, usual at port 465), or none, only for a mail server on this machine"},
	{Name: "mail-user", kind: lineKind, Example: "stele",
		What: "name with which the server signs in at the mail server; empty: it does not sign in"},
	{Name: "mail-password-file", kind: fileKind, Example: "/etc/stele/mail.secret",
		What: "file of the password at the mail server, which only the server should be able to read"},
	{Name: "mail-from", kind: senderKind, Example: "Archive of Examples <ids@example.org>",
		What: "sender of mail, with a name or without"},
	{Name: "mail-reply-to", kind: senderKind, Example: "help@example.org",
		What: "address for answers to mail; empty: that of the sender"},
	{Name: "mail-root", kind: fileKind, Example: "/etc/stele/tls/mail-root.pem",
		What: "file of the root certificates that authenticate the mail server, if it is private; empty: those of the system"},
	{Name: "mail-digest", kind: scheduleKind, Usual: "monday 07:00", Example: "friday 15:30",
		What: "when digests are sent, in UTC: the weekly ones on this day at this time, the daily ones each day at this time; empty: none is sent"},
	{Name: "passwords", kind: boolKind, Usual: "false", Example: "true",
		What: "let users sign in at the desk by a password and a code of an authenticator app, beside passkeys and one-time links; set base to an address with https first"},
	{Name: "dns", kind: addressesKind, Example: "192.0.2.1:53,[2001:db8::1]:53",
		What: "addresses of the DNS listeners (UDP and TCP) for the zones of published namespaces; empty: none"},
	{Name: "dns-tls", kind: addressesKind, Example: "192.0.2.1:853",
		What: "addresses of the DNS listeners over TLS (RFC 7858), with the certificate of https; empty: none (if dns and https are on, the server also answers over HTTPS at /dns-query)"},
	{Name: "dns-identity", kind: identityKind, Example: "ns1.example.org",
		What: "name that distinguishes this name server from others of the same zones, for clients that ask for it (NSID, RFC 5001; id.server, RFC 4892); empty: the server does not tell it"},
	{Name: "dns-proxies", kind: proxiesKind, Example: "127.0.0.1,10.0.0.0/8",
		What: "addresses and networks of DNS proxies, such as dnsdist, that send the client's address in version 2 of the PROXY protocol; they must always send it; empty: none"},
	{Name: "dns-tap", kind: fileKind, Example: "/run/dnstap.sock",
		What: "Unix socket of a dnstap collector, such as fstrm_capture, to which the server sends all DNS queries, with the addresses of the clients, and the answers; empty: none"},
	{Name: "hdl", kind: addressesKind, Example: "192.0.2.1:2641,[2001:db8::1]:2641",
		What: "addresses of the listeners (UDP and TCP) of the Handle protocol, for the namespaces of handles; empty: none (if it is on, the server also answers it on the web port, in HTTP)"},
	{Name: "hdl-administrators", kind: handlesKind, Example: "300:0.NA/20.500.12345",
		What: "handle identities that may do everything with all handles and home prefixes, each an index and a handle whose value has the key; empty: none"},
	{Name: "hdl-root", kind: fileKind, Example: "/etc/stele/root_info",
		What: "file of the root of the Handle System (root_info, siteinfo.bin or siteinfo.json), from which the server finds the home servers of handle identities that are not in this registry, to verify them; empty: such identities prove nothing, and the server asks no other"},
	{Name: "hdl-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks outside the public Internet at which such home servers may be; empty: none"},
	{Name: "hdl-client-certificates", kind: boolKind, Usual: "false", Example: "true",
		What: "ask clients of HTTPS for a certificate, by which administrators of handles may prove who they are over the REST interface; a client without one is answered all the same, but a browser whose user has certificates asks the user to choose one"},
	{Name: "hdl-admin-udp", kind: boolKind, Usual: "false", Example: "true",
		What: "let handles be changed over UDP too; needed only if the site's HS_SITE says so"},
	{Name: "notify-source", kind: sourcesKind, Example: "192.0.2.1,2001:db8::1",
		What: "source address of notifications to secondaries (NOTIFY), one for IPv4 and one for IPv6; empty: the first address of that family in dns, or what the system chooses if dns names all addresses"},
	{Name: "notify-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, to which the server may send notifications (NOTIFY); an owner of a namespace can't add others; empty: public addresses only"},
	{Name: "transfer-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, from which secondaries may transfer zones; an owner of a namespace can't add others; empty: public addresses only"},
	{Name: "link-resolver", kind: offAddressKind, Example: "9.9.9.9:53",
		What: "second DNS resolver, at an address of its own, that the link checker asks before it takes for sure that a host does not exist; empty: it is never sure, and such hosts count as not answering"},
	{Name: "link-rules", kind: fileKind, Example: "/etc/stele/walls.json",
		What: "file of the signs of walls and of pages that say not found, by which the link checker judges answers, instead of the list of the program; the server reads it again when it changes; empty: that list"},
	{Name: "link-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, at which the link checker may ask targets; empty: public addresses only"},
	{Name: "link-own", kind: purlHostsKind, Example: "data.example.org,repository.example.org",
		What: "hosts, with those below them, that the link checker may ask as often as the owners of namespaces want (stele links set --own); it asks others that owners name once a second at most, and slowly if they are slow; empty: none"},
	{Name: "link-timegate", kind: timeGateKind, Example: "https://web.archive.org/web",
		What: "TimeGate of a web archive (RFC 7089), which the link checker asks for copies of pages that are broken or gone, once a week at most; empty: no archive is asked"},
	{Name: "lsid-data", kind: sizeKind, Usual: "16MiB", Example: "64MiB",
		What: "maximum size of the data of an LSID, which the server fetches from the record's target with the service N2D; the server uses up to about twenty times as much memory for them; 0: the server gives no data of LSIDs"},
	{Name: "lsid-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, from which the server may fetch data of LSIDs; empty: public addresses only"},
	{Name: "lsid-foreign-authorities", kind: boolKind, Usual: "false", Example: "true",
		What: "accept notices of other LSID authorities from users who may change the record, and show them in metadata"},
	{Name: "metrics", kind: offAddressKind, Example: "127.0.0.1:9180",
		What: "address of the listener for /metrics (Prometheus) and /debug/pprof, which the public should not reach; empty: none"},
	{Name: "metrics-token", kind: boolKind, Usual: "false", Example: "true",
		What: "require a token at the metrics listener: of an administrator, with the scope metrics for /metrics and the scope admin for profiles"},
	{Name: "trace", kind: collectorKind, Example: "http://127.0.0.1:4318/v1/traces",
		What: "URL of a collector of OpenTelemetry (OTLP over HTTP, binary) to which the server sends traces of what it does; empty: it traces nothing"},
	{Name: "trace-sample", kind: shareKind, Usual: "0.1", Example: "1",
		What: "share of requests that are traced, from 0 to 1; a trusted proxy that sends traceparent decides for its requests"},
	{Name: "trace-names", kind: boolKind, Usual: "false", Example: "true",
		What: "send the names that readers ask for, and targets that are checked, with traces; without it traces have routes and schemes only"},
	{Name: "base", kind: baseKind, Example: "https://id.example.org",
		What: "public URL of the server, for links to itself; empty: the host of the request, if that is a name in the certificate, the setting host, or the address of the listener; otherwise links are relative"},
	{Name: "site-name", kind: lineKind, Example: "National Library of Examples",
		What: "name of the site or its operator, on all pages; empty: Stele"},
	{Name: "site-contact", kind: lineKind, Example: "ids@example.org",
		What: "mail address or URL of the operator, for readers; empty: none"},
	{Name: "site-logo", kind: fileKind, Example: "/etc/stele/logo.svg",
		What: "image on all pages, in SVG without scripts, PNG or JPEG, of at most 256 KB; empty: that of Stele"},
	{Name: "site-colour", kind: colourKind, Example: "#00538a",
		What: "colour of links and buttons on light screens; text in it must be readable (a contrast of 4.5 to 1); empty: the usual one"},
	{Name: "site-colour-dark", kind: colourKind, Example: "#8ec8f5",
		What: "colour of links and buttons on dark screens; empty: the usual one"},
	{Name: "site-texts", kind: offFolderKind, Example: "/etc/stele/texts",
		What: "folder of the operator's texts: about.en.md, help.en.md and imprint.en.md, and the same for other languages, such as about.pt-BR.md; plain text with Markdown's headings, lists, emphasis and links; empty: none"},
	{Name: "languages", kind: languagesKind, Example: "pt-BR,en",
		What: "languages of the pages; the first one is for readers whose browser asks for none of them; empty: all, English first"},
	{Name: "host", kind: hostKind, Example: "purl.example.org",
		What: "PURL host to assume for requests whose own host is not a PURL host; it becomes a PURL host of the registry"},
	{Name: "purl-host", kind: purlHostsKind, Usual: strings.Join(purl.DefaultHosts(), ","), Example: "purl.example.org,purl.org",
		What: "PURL hosts; the server adds them to those of the registry (stele purl-host), permanently"},
	{Name: "checked", kind: shouldersKind, Example: "12345/x5",
		What: "ARK shoulders whose names end in a check character, in addition to those that the program knows"},
	{Name: "global", kind: globalKind, Example: "ark=https://n2t.net/{id}",
		What: "resolver of each scheme for names that are in no namespace of the registry, with {id} for the name"},
	{Name: "origins", kind: originsKind, Example: ".inpe.br,150.163.0.0/16",
		What: "servers that are trusted to answer for the names that they made, where a name says which server made it, as IBIs do: host names, domains with a dot before, IP addresses and networks; readers of names that are not registered here are sent to them, and to no others; empty: none"},
	{Name: "origin-url", kind: originURLKind, Usual: "http://{host}:{port}/ibi/{label}", Example: "https://{host}/ibi/{label}",
		What: "template of the URL at which such a server is asked, with the parts of the name: {host}, or its IP address, {port} and {label}"},
	{Name: "ezid", kind: boolKind, Usual: "true", Example: "false",
		What: "answer clients of EZID below /.ezid, who mint, create and change identifiers with their tokens"},
	{Name: "oai", kind: boolKind, Usual: "true", Example: "false",
		What: "answer harvesters (OAI-PMH) at /.oai with the public records of the namespaces that are listed"},
	{Name: "log", kind: boolKind, Usual: "true", Example: "false",
		What: "keep the transparency log, in which each change is an entry, and serve it below /.log/"},
	{Name: "log-interval", kind: timeoutKind, Usual: "1m", Example: "10s",
		What: "how often the transparency log is signed, if something has changed"},
	{Name: "log-origin", kind: logNameKind, Example: "id.example.org/.log",
		What: "name of the transparency log, permanently: a URL without its scheme. It counts when the log is signed for the first time; then the registry keeps it, whatever this setting says; empty: the host of base and /.log"},
	{Name: "log-witnesses", kind: witnessesKind, Example: "https://witness.example.net=witness.example.net+87886bb0+BCaOqP2bc+HHTO8OnM9ufMPGANssqR9mpY9i8Crp363B",
		What: "witnesses that are asked to co-sign the checkpoints of the transparency log: the URL and the public key of each, with an equals sign between them"},
	{Name: "log-witness-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, at which the server may ask witnesses; empty: public addresses only"},
	{Name: "handover-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, at which the server may ask the heir of a namespace that is handed over; empty: public addresses only"},
	{Name: "handover-control", kind: controlsKind, Example: "https://www.example.org/",
		What: "URLs of servers of others that are always there, by which the server finds out that it is not offline itself: a day of silence of a registry whose heir this one is counts only if one of these answers, or another registry that is watched"},
	{Name: "escrow", kind: escrowKind, Example: "vault=sftp://stele@vault.example.org/srv/stele",
		What: "places at which the server keeps deposits of the registry: a short name of your choice, and the URL of a folder (file:///FOLDER), of an SFTP server (sftp://USER@HOST/FOLDER) or of a store that speaks S3 (s3://BUCKET/FOLDER?endpoint=https://HOST&region=REGION)"},
	{Name: "escrow-prefixes", kind: escrowPrefixesKind, Example: "vault=ark:12345,urn:example",
		What: "prefixes of the names in the deposits at each place, with commas between them; empty: all names"},
	{Name: "escrow-every", kind: escrowEveryKind, Example: "vault=6h",
		What: "time after which a deposit is made again at each place, if something has changed, from 1h on; empty: 24h"},
	{Name: "escrow-credentials", kind: escrowFileKind, Example: "vault=/etc/stele/vault.key",
		What: "file of the private key for SFTP, or of the keys for S3, of each place, which only the server should be able to read"},
	{Name: "escrow-known-hosts", kind: fileKind, Example: "/etc/stele/known_hosts",
		What: "file of the public keys of SFTP servers, as OpenSSH writes it; empty: .ssh/known_hosts in the home folder of the server's user, and /etc/ssh/ssh_known_hosts"},
	{Name: "escrow-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, at which servers that keep deposits may be; empty: public addresses only"},
	{Name: "harvest-allow", kind: proxiesKind, Example: "10.1.0.0/16,127.0.0.1",
		What: "addresses and networks, in addition to public ones, at which the server may harvest repositories; empty: public addresses only"},
	{Name: "oai-mail", kind: lineKind, Example: "ids@example.org",
		What: "mail address of the operator for harvesters; empty: site-contact if that is one, or else webmaster at the host of base"},
	{Name: "reverse", kind: boolKind, Usual: "false", Example: "true",
		What: "let the public ask which names point at a URL (L2Ns, L2Ls and L2C of RFC 2483)"},
	{Name: "ttl", kind: durationKind, Usual: "1h", Example: "24h",
		What: "how long clients may cache an answer, if neither the target nor the namespace has a TTL"},
	{Name: "status", kind: statusKind, Usual: "302", Example: "303", Choices: []string{"301", "302", "303", "307", "308"},
		What: "HTTP status of redirects, if neither the target nor the namespace has one"},
	{Name: "cache", kind: sizeKind, Usual: "16MB", Example: "512MB",
		What: "approximate memory for the cache of records; 0: no cache"},
	{Name: "redirect-cache", kind: sizeKind, Usual: "512MB", Example: "2GiB",
		What: "maximum memory for the cache of redirects, allocated as needed, with which the server answers without reading the registry; a name takes about 45 bytes; 0: no cache"},
	{Name: "dns-cache", kind: sizeKind, Usual: "256MB", Example: "1GiB",
		What: "maximum memory for the cache of packed DNS answers, if dns is on"},
	{Name: "hdl-cache", kind: sizeKind, Usual: "256MB", Example: "1GiB",
		What: "maximum memory for the cache of answers of the Handle protocol, allocated as needed, if hdl is on; an answer takes about 200 bytes; 0: no cache"},
	{Name: "dns-rate", kind: countKind, Usual: "20", Example: "200",
		What: "rate limit of DNS answers over UDP: how often per second the server sends the same answer, or the same kind of error, to one network; 0: no limit"},
	{Name: "dns-connections", kind: positiveKind, Usual: "1000", Example: "10000",
		What: "maximum number of open DNS connections over TCP and TLS; beyond that, a new connection replaces the one that has been idle for the longest time, of the client with the most connections"},
	{Name: "dns-per-client", kind: positiveKind, Usual: "100", Example: "20",
		What: "maximum number of open DNS connections of one address (for IPv6, of a /64 network)"},
	{Name: "dns-signatures", kind: countKind, Usual: "2000", Example: "500",
		What: "maximum number of answers that the server signs per second for zones in the mode online, which protects the processors from queries for random names; 0: no limit"},
	{Name: "api-rate", kind: countKind, Usual: "50", Example: "500",
		What: "rate limit of the API: requests per second of one user, or of one address without a valid token; 100 records of a batch count as one request, unless an administrator sends them; 0: no limit"},
	{Name: "api-burst", kind: positiveKind, Usual: "200", Example: "2000",
		What: "number of API requests that may come at once after a pause"},
	{Name: "job-lease", kind: leaseKind, Usual: "20s", Example: "1m",
		What: "how long a job of the desk waits for the server that works on it and does not answer, before another server of the same database, or the same server after a restart, goes on with it; the clocks of the servers may differ by less than this"},
	{Name: "cost-rate", kind: countKind, Usual: "100", Example: "1000",
		What: "rate limit of the resolver: cost per second of the requests of one address; a redirect costs 0, a description of a record 1, an .info page or a memento 2, each version in a list of versions 0.02; 0: no limit"},
	{Name: "cost-burst", kind: positiveKind, Usual: "1000", Example: "5000",
		What: "cost that may be requested at once after a pause"},
	{Name: "max-in-flight", kind: sizeKind, Usual: "128MB", Example: "512MB",
		What: "maximum memory for answers that clients have not read yet; beyond that, the server refuses large answers with status 503; 0: no limit"},
	{Name: "max-in-flight-per-client", kind: sizeKind, Usual: "32MB", Example: "64MB",
		What: "maximum memory for unread answers to one address (for IPv6, to a /64 network); beyond that, the server refuses large answers to it with status 429; 0: up to max-in-flight"},
	{Name: "grace", kind: durationKind, Usual: "30s", Example: "1m",
		What: "how long requests in progress may take when the server shuts down"},
	{Name: "drain", kind: durationKind, Usual: "0s", Example: "5s",
		What: "how long the server continues to accept connections when it shuts down, while /readyz answers 503, so that a load balancer can redirect clients first"},
	{Name: "max-connections", kind: positiveKind, Usual: "10000", Example: "50000",
		What: "maximum number of open connections; beyond that, the server closes one that has been idle for long"},
	{Name: "max-per-client", kind: countKind, Usual: "0", Example: "100",
		What: "maximum number of open connections of one address (for IPv6, of a /64 network) that is not in trusted-proxies; 0: no limit, because the address may be that of a proxy"},
	{Name: "max-header", kind: headKind, Usual: "16KiB", Example: "32KiB",
		What: "approximate maximum size of the header of a request"},
	{Name: "header-timeout", kind: timeoutKind, Usual: "5s", Example: "10s",
		What: "how long a client may take to send the header of a request"},
	{Name: "read-timeout", kind: timeoutKind, Usual: "10s", Example: "30s",
		What: "how long a client may take to send a whole request"},
	{Name: "write-timeout", kind: timeoutKind, Usual: "30s", Example: "1m",
		What: "how long a client may take to receive an answer"},
	{Name: "idle-timeout", kind: timeoutKind, Usual: "1m", Example: "30s",
		What: "how long a connection without a request stays open"},
	{Name: "fast-redirects", kind: boolKind, Usual: "true", Example: "false",
		What: "answer plain requests for names over HTTP/1.1 without TLS by a path of the server's own, which uses less CPU time than Go's HTTP server; all other requests go to Go's"},
	{Name: "log-file", kind: fileKind, Example: "/var/log/stele/stele.log",
		What: "file to which the server appends log lines, and which it reopens on SIGHUP; empty: standard error"},
	{Name: "log-level", kind: choiceKind, Usual: "info", Example: "warn", Choices: []string{"debug", "info", "warn", "error"},
		What: "lowest level of log lines"},
	{Name: "log-format", kind: choiceKind, Usual: "text", Example: "json", Choices: []string{"text", "json"},
		What: "format of log lines"},
	{Name: "log-requests", kind: boolKind, Usual: "false", Example: "true",
		What: "log each request, without the identity of the client"},
	{Name: "log-addresses", kind: boolKind, Usual: "false", Example: "true",
		What: "log the client's address with each request, and store it in the audit trail; ask your data protection officer first"},
	{Name: "usage", kind: boolKind, Usual: "true", Example: "false",
		What: "count how often names are used, without storing anything about the readers"},
	{Name: "usage-interval", kind: durationKind, Usual: "30s", Example: "10s",
		What: "how often the figures are written to the registry; a crash loses what was counted since"},
	{Name: "usage-cut-addresses", kind: boolKind, Usual: "false", Example: "true",
		What: "tell readers apart by the network of their address only (24 bits of IPv4, 48 of IPv6); fewer readers are counted"},
	{Name: "usage-robots", kind: fileKind, Example: "/etc/stele/COUNTER_Robots_list.json",
		What: "file of COUNTER's list of robots, which is asked after the program's own; empty: the program's own list only"},
	{Name: "usage-countries", kind: fileKind, Example: "/var/lib/GeoIP/GeoLite2-Country.mmdb",
		What: "file in MaxMind's format with the countries of addresses, which the server reads again when it changes; readers are counted by country, for namespaces only; empty: countries are not counted"},
	{Name: "audit-keep", kind: durationKind, Usual: "43800h", Example: "17520h",
		What: "how long the registry keeps entries of the audit trail; the default is five years; 0s: permanently. When it removes entries, it adds an entry about that"},
	{Name: "audit-file", kind: fileKind, Example: "/var/log/stele/audit.jsonl",
		What: "file to which the server appends the audit trail as JSON lines, and which it reopens on SIGHUP; empty: none"},
	{Name: "audit-syslog", kind: syslogKind, Example: "/dev/log",
		What: "syslog daemon to which the server sends the audit trail (RFC 5424): the path of its socket, udp://HOST:PORT or tcp://HOST:PORT; empty: none"},
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
	SearchIndex    string            `koanf:"search-index"`
	RedirectHTTPS  bool              `koanf:"redirect-https"`
	HSTS           time.Duration     `koanf:"hsts"`
	TrustedProxies []string          `koanf:"trusted-proxies"`
	ProxyHeader    string            `koanf:"proxy-header"`
	ProxyUser      string            `koanf:"proxy-user-header"`
	ProxyGroups    string            `koanf:"proxy-groups-header"`
	ProxyMakeUsers bool              `koanf:"proxy-make-users"`
	Issuer         map[string]string `koanf:"issuer"`
	IssuerLabel    map[string]string `koanf:"issuer-label"`
	IssuerClient   map[string]string `koanf:"issuer-client"`
	IssuerSecret   map[string]string `koanf:"issuer-secret-file"`
	IssuerScopes   map[string]string `koanf:"issuer-scopes"`
	IssuerClaim    map[string]string `koanf:"issuer-groups-claim"`
	IssuerGroup    []string          `koanf:"issuer-group"`
	IssuerEnter    map[string]string `koanf:"issuer-enter"`
	IssuerAllow    []string          `koanf:"issuer-allow"`
	MailServer     string            `koanf:"mail-server"`
	MailSecurity   string            `koanf:"mail-security"`
	MailUser       string            `koanf:"mail-user"`
	MailPassword   string            `koanf:"mail-password-file"`
	MailFrom       string            `koanf:"mail-from"`
	MailReplyTo    string            `koanf:"mail-reply-to"`
	MailRoot       string            `koanf:"mail-root"`
	MailDigest     string            `koanf:"mail-digest"`
	Passwords      bool              `koanf:"passwords"`
	SiteName       string            `koanf:"site-name"`
	SiteContact    string            `koanf:"site-contact"`
	SiteLogo       string            `koanf:"site-logo"`
	SiteColour     string            `koanf:"site-colour"`
	SiteColourDark string            `koanf:"site-colour-dark"`
	SiteTexts      string            `koanf:"site-texts"`
	Languages      []string          `koanf:"languages"`
	DNS            []string          `koanf:"dns"`
	DNSTLS         []string          `koanf:"dns-tls"`
	DNSIdentity    string            `koanf:"dns-identity"`
	DNSProxies     []string          `koanf:"dns-proxies"`
	DNSTap         string            `koanf:"dns-tap"`
	Handle         []string          `koanf:"hdl"`
	HandleAdmins   []string          `koanf:"hdl-administrators"`
	HandleAdminUDP bool              `koanf:"hdl-admin-udp"`
	HandleRoot     string            `koanf:"hdl-root"`
	HandleAllow    []string          `koanf:"hdl-allow"`
	HandleCerts    bool              `koanf:"hdl-client-certificates"`
	NotifySource   []string          `koanf:"notify-source"`
	NotifyAllow    []string          `koanf:"notify-allow"`
	TransferAllow  []string          `koanf:"transfer-allow"`
	LinkResolver   string            `koanf:"link-resolver"`
	LinkRules      string            `koanf:"link-rules"`
	LinkAllow      []string          `koanf:"link-allow"`
	LinkOwn        []string          `koanf:"link-own"`
	LinkTimeGate   string            `koanf:"link-timegate"`
	LSIDData       int64             `koanf:"lsid-data"`
	LSIDAllow      []string          `koanf:"lsid-allow"`
	LSIDForeign    bool              `koanf:"lsid-foreign-authorities"`
	Metrics        string            `koanf:"metrics"`
	MetricsToken   bool              `koanf:"metrics-token"`
	Trace          string            `koanf:"trace"`
	TraceSample    float64           `koanf:"trace-sample"`
	TraceNames     bool              `koanf:"trace-names"`
	Base           string            `koanf:"base"`
	Host           string            `koanf:"host"`
	PURLHosts      []string          `koanf:"purl-host"`
	Checked        []string          `koanf:"checked"`
	Global         map[string]string `koanf:"global"`
	Origins        []string          `koanf:"origins"`
	OriginURL      string            `koanf:"origin-url"`
	EZID           bool              `koanf:"ezid"`
	OAI            bool              `koanf:"oai"`
	OAIMail        string            `koanf:"oai-mail"`
	HarvestAllow   []string          `koanf:"harvest-allow"`
	Log            bool              `koanf:"log"`
	LogInterval    time.Duration     `koanf:"log-interval"`
	LogOrigin      string            `koanf:"log-origin"`
	LogWitnesses   []string          `koanf:"log-witnesses"`
	LogAllow       []string          `koanf:"log-witness-allow"`
	HandOverAllow  []string          `koanf:"handover-allow"`

	HandOverControl []string `koanf:"handover-control"`

	Escrow            map[string]string `koanf:"escrow"`
	EscrowPrefixes    map[string]string `koanf:"escrow-prefixes"`
	EscrowEvery       map[string]string `koanf:"escrow-every"`
	EscrowCredentials map[string]string `koanf:"escrow-credentials"`
	EscrowKnownHosts  string            `koanf:"escrow-known-hosts"`
	EscrowAllow       []string          `koanf:"escrow-allow"`

	Reverse        bool          `koanf:"reverse"`
	TTL            time.Duration `koanf:"ttl"`
	Status         int           `koanf:"status"`
	Cache          int64         `koanf:"cache"`
	RedirectCache  int64         `koanf:"redirect-cache"`
	DNSCache       int64         `koanf:"dns-cache"`
	HandleCache    int64         `koanf:"hdl-cache"`
	DNSRate        int           `koanf:"dns-rate"`
	DNSConnections int           `koanf:"dns-connections"`
	DNSPerClient   int           `koanf:"dns-per-client"`
	DNSSignatures  int           `koanf:"dns-signatures"`
	APIRate        int           `koanf:"api-rate"`
	APIBurst       int           `koanf:"api-burst"`
	JobLease       time.Duration `koanf:"job-lease"`
	CostRate       int           `koanf:"cost-rate"`
	CostBurst      int           `koanf:"cost-burst"`
	MaxInFlight    int64         `koanf:"max-in-flight"`
	MaxInFlightOne int64         `koanf:"max-in-flight-per-client"`
	Grace          time.Duration `koanf:"grace"`
	Drain          time.Duration `koanf:"drain"`
	MaxConnections int           `koanf:"max-connections"`
	MaxPerClient   int           `koanf:"max-per-client"`
	MaxHeader      int64         `koanf:"max-header"`
	HeaderTimeout  time.Duration `koanf:"header-timeout"`
	ReadTimeout    time.Duration `koanf:"read-timeout"`
	WriteTimeout   time.Duration `koanf:"write-timeout"`
	IdleTimeout    time.Duration `koanf:"idle-timeout"`
	FastRedirects  bool          `koanf:"fast-redirects"`
	LogFile        string        `koanf:"log-file"`
	LogLevel       string        `koanf:"log-level"`
	LogFormat      string        `koanf:"log-format"`
	LogRequests    bool          `koanf:"log-requests"`
	LogAddresses   bool          `koanf:"log-addresses"`
	Usage          bool          `koanf:"usage"`
	UsageInterval  time.Duration `koanf:"usage-interval"`
	UsageCut       bool          `koanf:"usage-cut-addresses"`
	UsageRobots    string        `koanf:"usage-robots"`
	UsageCountries string        `koanf:"usage-countries"`
	AuditKeep      time.Duration `koanf:"audit-keep"`
	AuditFile      string        `koanf:"audit-file"`
	AuditSyslog    string        `koanf:"audit-syslog"`
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
