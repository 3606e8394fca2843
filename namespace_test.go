package stele

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNamespaceJSON(t *testing.T) {
	s := spellers(t)
	rapid.Check(t, func(t *rapid.T) {
		n := goodNamespace.Draw(t, "namespace")
		b, err := n.MarshalJSON()
		if err != nil || !utf8.Valid(b) || !json.Valid(b) {
			t.Fatalf("%q, %v", b, err)
		}
		back, err := s.DecodeNamespace(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(n, back, same); diff != "" {
			t.Fatalf("%s: %s", b, diff)
		}
		if again := back.AppendJSON(nil); !bytes.Equal(b, again) {
			t.Fatalf("%s, and then %s", b, again)
		}
	})
}

func TestNamespaceDocument(t *testing.T) {
	const text = `{"scheme":"ibi","prefix":"sid.inpe.br/mtc-m18","owner":"user:ana","title":"The library",` +
		`"minter":{"kind":"ibi","host":"mtc-m18.sid.inpe.br","port":80,"ip":"150.163.2.174","ipPort":800,"allowPrivate":true,"granularity":"1us"},` +
		`"ttl":3600,"status":302,"persistence":{"level":"permanent","until":"2040-01-01","statement":"yes"},` +
		`"hosts":["example.org",".inpe.br"],"protocols":["https"],"delegate":"https://example.org/{id}","quota":1099511627776,` +
		`"version":2,"created":"1970-01-01T00:00:00Z","modified":"2023-11-14T22:13:20.000000001Z","by":"user:root"}`
	want := richNamespace()
	want.Checked, want.Minter.Template, want.Minter.Seed = false, "", 0
	got, err := spellers(t).DecodeNamespace([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Error(diff)
	}
	if back := string(got.AppendJSON(nil)); back != text {
		t.Errorf("%s\nwant\n%s", back, text)
	}
	noid, err := spellers(t).DecodeNamespace([]byte(`{"scheme":"ark","prefix":"ark:12345/x5","minter":{"kind":"noid","template":".reedeedk","seed":18446744073709551615},"checked":true}`))
	if err != nil || noid.Minter != (Minter{Kind: MinterNOID, Template: ".reedeedk", Seed: 1<<64 - 1}) || !noid.Checked {
		t.Errorf("%+v, %v", noid, err)
	}
}

func TestDecodeNamespaceProblems(t *testing.T) {
	s := spellers(t)
	for members, want := range map[string]string{
		``:                                   `scheme: "" is no name of a scheme; give one, such as ark`,
		`"scheme":7`:                         `scheme: should be a string, and is a number`,
		`"scheme":"ef"`:                      `scheme: "ef" is no known scheme; use one of ab, cd, ark, ibi, hdl, urn`,
		`"scheme":"ark","name":1`:            `name: there is no such field; there are scheme, prefix`,
		`"scheme":"ark","minter":"noid"`:     `minter: should be an object, and is a string`,
		`"scheme":"ark","minter":{"Kind":1}`: `minter.Kind: there is no such field; there are kind, host`,
		`"scheme":"ibi","minter":{"kind":"ibi","host":"a.b","port":65536}`: `minter.port: should be a whole number from 0 to 65535`,
		`"scheme":"ark","hosts":["a",1]`:                                   `hosts[1]: should be a string, and is a number`,
		`"scheme":"ark","quota":-1`:                                        `quota: should be a whole number from 0 to 18446744073709551615`,
		`"scheme":"ark","checked":0`:                                       `checked: should be true or false`,
		`"scheme":"ark",`:                                                  `this is no JSON`,
	} {
		_, err := s.DecodeNamespace([]byte("{" + members + "}"))
		problems, ok := errors.AsType[Problems](err)
		if !ok || !errors.Is(err, Invalid) || len(problems) != 1 || !strings.Contains(err.Error(), "read namespace: "+want) {
			t.Errorf("%s: %v\nwant %s", members, err, want)
		}
	}
	if _, err := s.DecodeNamespace(make([]byte, MaxDocument+1)); !errors.Is(err, Invalid) || !strings.Contains(err.Error(), "4194304 are the most") {
		t.Error(err)
	}
}

func TestValidateNamespace(t *testing.T) {
	ibi := func(m Minter) Namespace {
		m.Kind = MinterIBI
		return Namespace{Scheme: "ibi", Minter: m}
	}
	host := func(name string) Namespace { return ibi(Minter{Host: name, Port: 80}) }
	ip := func(address string) Namespace { return ibi(Minter{IP: address, IPPort: 800}) }
	ark := func(change func(*Namespace)) Namespace {
		n := Namespace{Scheme: "ark", Prefix: "ark:12345/x5"}
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		n    Namespace
		want string
	}{
		"root":              {Namespace{Scheme: "ark"}, ""},
		"scheme":            {Namespace{Scheme: "ARK"}, `scheme: "ARK" is no name of a scheme`},
		"prefix":            {ark(func(n *Namespace) { n.Prefix = "ark:\x00" }), "prefix: at byte 4: control character"},
		"owner":             {ark(func(n *Namespace) { n.Owner = "a\nb" }), "owner: at byte 1: control character"},
		"title":             {ark(func(n *Namespace) { n.Title = "\x00" }), "title: at byte 0: control character"},
		"ttl":               {ark(func(n *Namespace) { n.TTL = MaxTTL + 1 }), "ttl: 2592001 seconds are too long"},
		"status":            {ark(func(n *Namespace) { n.Status = 500 }), "status: 500 is no status of a redirect"},
		"persistence":       {ark(func(n *Namespace) { n.Persistence.Until = "x" }), "persistence.until: "},
		"by":                {ark(func(n *Namespace) { n.By = "\x00" }), "by: "},
		"created":           {ark(func(n *Namespace) { n.Created = time.Unix(1<<50, 0) }), "created: "},
		"modified":          {ark(func(n *Namespace) { n.Modified = time.Unix(1<<50, 0) }), "modified: "},
		"hosts":             {ark(func(n *Namespace) { n.Hosts = []string{"a.b", ".a.b", "192.0.2.1", "::1", "localhost"} }), ""},
		"host with port":    {ark(func(n *Namespace) { n.Hosts = []string{"a.b", "a.b:80"} }), `hosts[1]: "a.b:80" is no host; write example.org`},
		"capital host":      {ark(func(n *Namespace) { n.Hosts = []string{"A.b"} }), `hosts[0]: "A.b" has capitals; write "a.b"`},
		"host in brackets":  {ark(func(n *Namespace) { n.Hosts = []string{"[::1]"} }), `an IP address without brackets`},
		"no host":           {ark(func(n *Namespace) { n.Hosts = []string{""} }), `hosts[0]: "" is no host`},
		"only a dot":        {ark(func(n *Namespace) { n.Hosts = []string{"."} }), `hosts[0]: "." is no host`},
		"star":              {ark(func(n *Namespace) { n.Hosts = []string{"*.a.b"} }), `.example.org for all below it`},
		"host twice":        {ark(func(n *Namespace) { n.Hosts = []string{"a", "a"} }), "hosts[1]: is the same as hosts[0]"},
		"many hosts":        {ark(func(n *Namespace) { n.Hosts = make([]string, MaxHosts+1) }), "hosts: has 1001 items"},
		"protocols":         {ark(func(n *Namespace) { n.Protocols = strings.Fields(protocols) }), ""},
		"protocol":          {ark(func(n *Namespace) { n.Protocols = []string{"javascript"} }), `protocols[0]: "javascript" is no protocol that is allowed; use some of http, https`},
		"capital protocol":  {ark(func(n *Namespace) { n.Protocols = []string{"HTTP"} }), `in lower case`},
		"protocol twice":    {ark(func(n *Namespace) { n.Protocols = []string{"http", "http"} }), "protocols[1]: is the same as protocols[0]"},
		"many protocols":    {ark(func(n *Namespace) { n.Protocols = make([]string, 8) }), "protocols: has 8 items; 7 are the most"},
		"delegate":          {ark(func(n *Namespace) { n.Delegate = "https://a.b/x?y={rest}#z" }), ""},
		"delegate, no mark": {ark(func(n *Namespace) { n.Delegate = "https://a.b/" }), "delegate: has neither {id} nor {rest}"},
		"delegate, script":  {ark(func(n *Namespace) { n.Delegate = "javascript:{id}" }), "delegate: "},
		"delegate, ftp":     {ark(func(n *Namespace) { n.Delegate = "ftp://a.b/{id}" }), "does not begin with http:// or https://"},
		"delegate, host":    {ark(func(n *Namespace) { n.Delegate = "https://{id}.a.b/" }), "the name must not decide the host"},
		"delegate, port":    {ark(func(n *Namespace) { n.Delegate = "https://a.b:{id}/" }), "the name must not decide the host"},
		"delegate, bare":    {ark(func(n *Namespace) { n.Delegate = "https://{id}" }), "the name must not decide the host"},
		"delegate, behind":  {ark(func(n *Namespace) { n.Delegate = "https://a.b{id}" }), "the name must not decide the host"},
		"delegate, mark":    {ark(func(n *Namespace) { n.Delegate = "https://a.b/{id}/{name}" }), "'{' can't stand in a URL"},
		"delegate, escape":  {ark(func(n *Namespace) { n.Delegate = "https://a.b/%{id}" }), "after % come two hexadecimal digits"},
		"kind":              {ark(func(n *Namespace) { n.Minter.Kind = "NOID" }), `minter.kind: "NOID" is no kind of minter; use ibi, pilin, noid or uuid`},
		"no kind":           {ark(func(n *Namespace) { n.Minter.Template = ".zd" }), "minter.template: means nothing without a kind of minter"},
		"noid":              {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterNOID, Template: ".zd", Seed: 1} }), ""},
		"noid, none":        {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterNOID} }), "minter.template: is missing; give one, such as .reedeedk"},
		"noid, long":        {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterNOID, Template: strings.Repeat("d", 256)} }), "minter.template: has 256 bytes"},
		"noid, host":        {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterNOID, Template: ".zd", Host: "a.b"} }), "minter.host: means nothing to the minter noid"},
		"noid, checked":     {ark(func(n *Namespace) { n.Checked, n.Minter = true, Minter{Kind: MinterNOID, Template: ".zd"} }), "minter.template: names of this namespace end in a check character, so the template ends in k"},
		"checked":           {ark(func(n *Namespace) { n.Checked = true }), ""},
		"uuid":              {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterUUID} }), ""},
		"uuid, checked":     {ark(func(n *Namespace) { n.Checked, n.Minter = true, Minter{Kind: MinterUUID} }), "checked: the minter uuid makes names without a check character"},
		"uuid, seed":        {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterUUID, Seed: 1} }), "minter.seed: means nothing to the minter uuid"},
		"pilin":             {Namespace{Scheme: "hdl", Minter: Minter{Kind: MinterPILIN}}, ""},
		"pilin, ark":        {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterPILIN} }), "minter.kind: pilin makes handles"},
		"pilin, granular":   {Namespace{Scheme: "hdl", Minter: Minter{Kind: MinterPILIN, Granularity: "1s"}}, "minter.granularity: means nothing to the minter pilin"},
		"ibi":               {host("mtc-m18.sid.inpe.br"), ""},
		"ibi, ark":          {ark(func(n *Namespace) { n.Minter = Minter{Kind: MinterIBI, Host: "a.b", Port: 80} }), "minter.kind: ibi makes IBIs"},
		"ibi, nothing":      {ibi(Minter{}), "minter.host: is missing; an IBI is made from a host name, an IP address or both"},
		"ibi, no dot":       {host("localhost"), `minter.host: "localhost" has no dot`},
		"ibi, capitals":     {host("A.b"), `minter.host: "A.b" has capitals; write "a.b"`},
		"ibi, odd host":     {host("a b.c"), `minter.host: "a b.c" is no host name`},
		"ibi, host is ip":   {host("192.0.2.1"), `minter.host: "192.0.2.1" is an IP address; give it as ip`},
		"ibi, host is ipv6": {host("[::1]"), `is an IP address; give it as ip`},
		"ibi, no port":      {ibi(Minter{Host: "a.b"}), "minter.port: is missing; give the server's port"},
		"ibi, odd port":     {ibi(Minter{IP: "150.163.2.174", IPPort: 800, Port: 80}), "minter.port: means nothing without host"},
		"ibi, odd ip port":  {ibi(Minter{Host: "a.b", Port: 80, IPPort: 800}), "minter.ipPort: means nothing without ip"},
		"ibi, template":     {ibi(Minter{Host: "a.b", Port: 80, Template: ".zd"}), "minter.template: means nothing to the minter ibi"},
		"ibi, ip":           {ip("2001:252:0:1::2008:6"), ""},
		"ibi, no ip":        {ip("150.163.2"), `minter.ip: "150.163.2" is no IP address`},
		"ibi, zone":         {ip("fe80::1%eth0"), "is no IP address"},
		"ibi, mapped":       {ip("::ffff:150.163.2.174"), "is not the usual way to write the address; write 150.163.2.174"},
		"ibi, long ip":      {ip("2001:252:0:1:0:0:2008:6"), "write 2001:252:0:1::2008:6"},
		"ibi, private":      {ip("10.0.0.1"), "minter.ip: others have the address 10.0.0.1 too"},
		"ibi, loopback":     {ip("::1"), "minter.ip: others have the address ::1 too"},
		"ibi, nowhere":      {ip("0.0.0.0"), "minter.ip: others have"},
		"ibi, allowed":      {ibi(Minter{IP: "127.0.0.1", IPPort: 1, AllowPrivate: true}), ""},
		"ibi, granularity":  {ibi(Minter{Host: "a.b", Port: 80, Granularity: "1\n"}), "minter.granularity: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.n.Validate()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			problems, ok := errors.AsType[Problems](err)
			if !ok || !errors.Is(err, Invalid) || len(problems) != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func FuzzDecodeNamespace(f *testing.F) {
	s := spellers(f)
	f.Add(string(richNamespace().AppendJSON(nil)))
	f.Add(`{"scheme":"ark","prefix":"ark:12345/x5","minter":{"kind":"noid","template":".reedeedk","seed":1},"checked":true}`)
	f.Add(`{"scheme":"ibi","minter":{"kind":"ibi","host":"a.b","port":80},"hosts":[".a.b"],"protocols":["http"],"delegate":"http://a/{id}"}`)
	f.Add(`{"scheme":"ark","grants":[{"to":"user:ana","role":"owner"},{"to":"group:staff","role":"reader"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := s.DecodeNamespace([]byte(text))
		if err != nil {
			if problems, ok := errors.AsType[Problems](err); !ok || KindOf(err) != Invalid || len(problems) == 0 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is no JSON, and is taken", text)
		}
		back, err := s.DecodeNamespace(n.AppendJSON(nil))
		if diff := cmp.Diff(n, back, same); diff != "" || err != nil {
			t.Fatalf("%q: %v, %s", text, err, diff)
		}
	})
}
