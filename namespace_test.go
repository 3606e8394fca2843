package stele_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestValidateNamespace(t *testing.T) {
	ibi := func(m stele.Minter) stele.Namespace {
		m.Kind = stele.MinterIBI
		return stele.Namespace{Scheme: "ibi", Minter: m}
	}
	host := func(name string) stele.Namespace { return ibi(stele.Minter{Host: name, Port: 80}) }
	ip := func(address string) stele.Namespace { return ibi(stele.Minter{IP: address, IPPort: 800}) }
	ark := func(change func(*stele.Namespace)) stele.Namespace {
		n := stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5"}
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		n    stele.Namespace
		want string
	}{
		"root":              {stele.Namespace{Scheme: "ark"}, ""},
		"scheme":            {stele.Namespace{Scheme: "ARK"}, `scheme: "ARK" is not a name of a scheme`},
		"prefix":            {ark(func(n *stele.Namespace) { n.Prefix = "ark:\x00" }), "prefix: at byte 4: control character"},
		"owner":             {ark(func(n *stele.Namespace) { n.Owner = "a\nb" }), "owner: at byte 1: control character"},
		"title":             {ark(func(n *stele.Namespace) { n.Title = "\x00" }), "title: at byte 0: control character"},
		"ttl":               {ark(func(n *stele.Namespace) { n.TTL = stele.MaxTTL + 1 }), "ttl: 2592001 seconds are too long"},
		"status":            {ark(func(n *stele.Namespace) { n.Status = 500 }), "status: 500 is not a status of a redirect"},
		"persistence":       {ark(func(n *stele.Namespace) { n.Persistence.Until = "x" }), "persistence.until: "},
		"by":                {ark(func(n *stele.Namespace) { n.By = "\x00" }), "by: "},
		"created":           {ark(func(n *stele.Namespace) { n.Created = time.Unix(1<<50, 0) }), "created: "},
		"modified":          {ark(func(n *stele.Namespace) { n.Modified = time.Unix(1<<50, 0) }), "modified: "},
		"hosts":             {ark(func(n *stele.Namespace) { n.Hosts = []string{"a.b", ".a.b", "192.0.2.1", "::1", "localhost"} }), ""},
		"host with port":    {ark(func(n *stele.Namespace) { n.Hosts = []string{"a.b", "a.b:80"} }), `hosts[1]: "a.b:80" is not a host; write example.org`},
		"capital host":      {ark(func(n *stele.Namespace) { n.Hosts = []string{"A.b"} }), `hosts[0]: "A.b" has capitals; write "a.b"`},
		"host in brackets":  {ark(func(n *stele.Namespace) { n.Hosts = []string{"[::1]"} }), `an IP address without brackets`},
		"no host":           {ark(func(n *stele.Namespace) { n.Hosts = []string{""} }), `hosts[0]: "" is not a host`},
		"only a dot":        {ark(func(n *stele.Namespace) { n.Hosts = []string{"."} }), `hosts[0]: "." is not a host`},
		"star":              {ark(func(n *stele.Namespace) { n.Hosts = []string{"*.a.b"} }), `.example.org for all below it`},
		"host twice":        {ark(func(n *stele.Namespace) { n.Hosts = []string{"a", "a"} }), "hosts[1]: is the same as hosts[0]"},
		"many hosts":        {ark(func(n *stele.Namespace) { n.Hosts = make([]string, stele.MaxHosts+1) }), "hosts: has 1001 items"},
		"protocols":         {ark(func(n *stele.Namespace) { n.Protocols = strings.Fields(stele.Protocols) }), ""},
		"protocol":          {ark(func(n *stele.Namespace) { n.Protocols = []string{"javascript"} }), `protocols[0]: "javascript" is not a protocol that is allowed; use some of http, https`},
		"capital protocol":  {ark(func(n *stele.Namespace) { n.Protocols = []string{"HTTP"} }), `in lower case`},
		"protocol twice":    {ark(func(n *stele.Namespace) { n.Protocols = []string{"http", "http"} }), "protocols[1]: is the same as protocols[0]"},
		"many protocols":    {ark(func(n *stele.Namespace) { n.Protocols = make([]string, 8) }), "protocols: has 8 items; 7 are the most"},
		"delegate":          {ark(func(n *stele.Namespace) { n.Delegate = "https://a.b/x?y={rest}#z" }), ""},
		"delegate, no mark": {ark(func(n *stele.Namespace) { n.Delegate = "https://a.b/" }), "delegate: has neither {id} nor {rest}"},
		"delegate, script":  {ark(func(n *stele.Namespace) { n.Delegate = "javascript:{id}" }), "delegate: "},
		"delegate, ftp":     {ark(func(n *stele.Namespace) { n.Delegate = "ftp://a.b/{id}" }), "does not begin with http:// or https://"},
		"delegate, host":    {ark(func(n *stele.Namespace) { n.Delegate = "https://{id}.a.b/" }), "the name must not decide the host"},
		"delegate, port":    {ark(func(n *stele.Namespace) { n.Delegate = "https://a.b:{id}/" }), "the name must not decide the host"},
		"delegate, bare":    {ark(func(n *stele.Namespace) { n.Delegate = "https://{id}" }), "the name must not decide the host"},
		"delegate, behind":  {ark(func(n *stele.Namespace) { n.Delegate = "https://a.b{id}" }), "the name must not decide the host"},
		"delegate, mark":    {ark(func(n *stele.Namespace) { n.Delegate = "https://a.b/{id}/{name}" }), "'{' can't stand in a URL"},
		"delegate, escape":  {ark(func(n *stele.Namespace) { n.Delegate = "https://a.b/%{id}" }), "after % come two hexadecimal digits"},
		"kind":              {ark(func(n *stele.Namespace) { n.Minter.Kind = "NOID" }), `minter.kind: "NOID" is not a kind of minter; use ibi, pilin, noid or uuid`},
		"no kind":           {ark(func(n *stele.Namespace) { n.Minter.Template = ".zd" }), "minter.template: means nothing without a kind of minter"},
		"noid":              {ark(func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterNOID, Template: ".zd", Seed: 1} }), ""},
		"noid, none":        {ark(func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterNOID} }), "minter.template: is missing; give one, such as .reedeedk"},
		"noid, long": {ark(func(n *stele.Namespace) {
			n.Minter = stele.Minter{Kind: stele.MinterNOID, Template: strings.Repeat("d", 256)}
		}), "minter.template: has 256 bytes"},
		"noid, host": {ark(func(n *stele.Namespace) {
			n.Minter = stele.Minter{Kind: stele.MinterNOID, Template: ".zd", Host: "a.b"}
		}), "minter.host: means nothing to the minter noid"},
		"noid, checked": {ark(func(n *stele.Namespace) {
			n.Checked, n.Minter = true, stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}
		}), "minter.template: names of this namespace end in a check character, so the template ends in k"},
		"checked":           {ark(func(n *stele.Namespace) { n.Checked = true }), ""},
		"uuid":              {ark(func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterUUID} }), ""},
		"uuid, checked":     {ark(func(n *stele.Namespace) { n.Checked, n.Minter = true, stele.Minter{Kind: stele.MinterUUID} }), "checked: the minter uuid makes names without a check character"},
		"uuid, seed":        {ark(func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterUUID, Seed: 1} }), "minter.seed: means nothing to the minter uuid"},
		"pilin":             {stele.Namespace{Scheme: "hdl", Minter: stele.Minter{Kind: stele.MinterPILIN}}, ""},
		"pilin, ark":        {ark(func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterPILIN} }), "minter.kind: pilin makes handles"},
		"pilin, granular":   {stele.Namespace{Scheme: "hdl", Minter: stele.Minter{Kind: stele.MinterPILIN, Granularity: "1s"}}, "minter.granularity: means nothing to the minter pilin"},
		"ibi":               {host("mtc-m18.sid.inpe.br"), ""},
		"ibi, ark":          {ark(func(n *stele.Namespace) { n.Minter = stele.Minter{Kind: stele.MinterIBI, Host: "a.b", Port: 80} }), "minter.kind: ibi makes IBIs"},
		"ibi, nothing":      {ibi(stele.Minter{}), "minter.host: is missing; an IBI is made from a host name, an IP address or both"},
		"ibi, no dot":       {host("localhost"), `minter.host: "localhost" has no dot`},
		"ibi, capitals":     {host("A.b"), `minter.host: "A.b" has capitals; write "a.b"`},
		"ibi, odd host":     {host("a b.c"), `minter.host: "a b.c" is not a host name`},
		"ibi, host is ip":   {host("192.0.2.1"), `minter.host: "192.0.2.1" is an IP address; give it as ip`},
		"ibi, host is ipv6": {host("[::1]"), `is an IP address; give it as ip`},
		"ibi, no port":      {ibi(stele.Minter{Host: "a.b"}), "minter.port: is missing; give the server's port"},
		"ibi, odd port":     {ibi(stele.Minter{IP: "150.163.2.174", IPPort: 800, Port: 80}), "minter.port: means nothing without host"},
		"ibi, odd ip port":  {ibi(stele.Minter{Host: "a.b", Port: 80, IPPort: 800}), "minter.ipPort: means nothing without ip"},
		"ibi, template":     {ibi(stele.Minter{Host: "a.b", Port: 80, Template: ".zd"}), "minter.template: means nothing to the minter ibi"},
		"ibi, ip":           {ip("2001:252:0:1::2008:6"), ""},
		"ibi, no ip":        {ip("150.163.2"), `minter.ip: "150.163.2" is not an IP address`},
		"ibi, zone":         {ip("fe80::1%eth0"), "is not an IP address"},
		"ibi, mapped":       {ip("::ffff:150.163.2.174"), "is not the usual way to write the address; write 150.163.2.174"},
		"ibi, long ip":      {ip("2001:252:0:1:0:0:2008:6"), "write 2001:252:0:1::2008:6"},
		"ibi, private":      {ip("10.0.0.1"), "minter.ip: others have the address 10.0.0.1 too"},
		"ibi, loopback":     {ip("::1"), "minter.ip: others have the address ::1 too"},
		"ibi, nowhere":      {ip("0.0.0.0"), "minter.ip: others have"},
		"ibi, allowed":      {ibi(stele.Minter{IP: "127.0.0.1", IPPort: 1, AllowPrivate: true}), ""},
		"ibi, granularity":  {ibi(stele.Minter{Host: "a.b", Port: 80, Granularity: "1\n"}), "minter.granularity: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.n.Validate()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			problems, ok := errors.AsType[stele.Problems](err)
			if !ok || !errors.Is(err, stele.Invalid) || len(problems) != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}
