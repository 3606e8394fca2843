package resolver

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestOrigin: a name that is not registered leads to the server that made it, if that is listed, and nowhere else.
func TestOrigin(t *testing.T) {
	origins, err := NewOrigins([]string{".inpe.br", "mtc.example.org", "150.163.0.0/16", "2001:db8::1"}, "http://{host}:{port}/ibi/{label}")
	if err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t, Options{Origins: origins, Hosts: []string{"own.inpe.br", "port.inpe.br:8080"}})
	ibip := func(ip, rest string) string { // an IBIp of the address
		for _, label := range []string{"J8LNKAN8RW/34R", "8JMKD3MGP8W/34PGRBS"} {
			if x, err := r.schemes.Explain(label); err == nil && x.Parts.Get("ip") == ip {
				return label + rest
			}
		}
		t.Fatalf("there is no label of %s", ip)
		return ""
	}
	for name, want := range map[string]string{
		"sid.inpe.br/mtc-m18@80/2009/02.16.17.46":   "http://mtc-m18.sid.inpe.br/ibi/sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
		"sid.inpe.br/mtc-m18.1905/2009/02.16.17.46": "http://mtc-m18.sid.inpe.br:1905/ibi/sid.inpe.br/mtc-m18.1905/2009/02.16.17.46",
		"example.org/mtc/2009/02.16.17.46":          "http://mtc.example.org/ibi/example.org/mtc/2009/02.16.17.46",
		"example.org/other/2009/02.16.17.46":        "",
		"evilinpe.br/mtc/2009/02.16.17.46":          "",
		"inpe.br/own@80/2009/02.16.17.46":           "",
		"inpe.br/port.8080/2009/02.16.17.46":        "",
		"inpe.br/port.8081/2009/02.16.17.46":        "http://port.inpe.br:8081/ibi/inpe.br/port.8081/2009/02.16.17.46",
		ibip("150.163.34.243", ""):                  "http://150.163.34.243:800/ibi/8JMKD3MGP8W/34PGRBS",
		"ark:/12345/x1":                             "",
		"inpe.br.evil.example/mtc/2009/02.16.17.46": "",
	} {
		res, err := r.Resolve(t.Context(), Request{ID: r.id(name), Trace: true})
		switch {
		case want == "" && stele.KindOf(err) != stele.NotFound:
			t.Errorf("%s leads to %q (%v)", name, res.URL, err)
		case want != "" && (err != nil || res.Kind != Delegation || res.URL != want):
			t.Errorf("%s leads to %q (%v), want %q", name, res.URL, err, want)
		case want != "" && !strings.Contains(traceOf(res), "which is trusted to answer for it"):
			t.Errorf("%s: the trace is %s", name, traceOf(res))
		}
	}
	// What is registered, and what is in a namespace of the registry, is answered here.
	r.put(stele.Record{ID: r.id("sid.inpe.br/mtc-m18@80/2009/02.16.17.46"), Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1"}}})
	if res, err := r.Resolve(t.Context(), Request{ID: r.id("sid.inpe.br/mtc-m18@80/2009/02.16.17.46")}); err != nil || res.URL != "https://example.org/1" {
		t.Errorf("a registered name leads to %q (%v)", res.URL, err)
	}
	r.namespace(stele.Namespace{Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m19"})
	if res, err := r.Resolve(t.Context(), Request{ID: r.id("sid.inpe.br/mtc-m19/2009/02.16.17.46")}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a name of a namespace leads to %q (%v)", res.URL, err)
	}
	if res, err := r.Resolve(t.Context(), Request{ID: r.id("sid.inpe.br/mtc-m20/2009/02.16.17.46"), Query: "a=1&b=//x"}); err != nil || res.URL != "http://mtc-m20.sid.inpe.br/ibi/sid.inpe.br/mtc-m20/2009/02.16.17.46?a=1&b=//x" {
		t.Errorf("with a query: %q (%v)", res.URL, err)
	}
}

func traceOf(res Resolution) (text string) {
	for _, s := range res.Trace {
		text += s.Name + ": " + s.Result.Error() + "\n"
	}
	return text
}

// TestOrigins: what can't be trusted as a whole, and templates by which a name could choose the server, are refused.
func TestOrigins(t *testing.T) {
	const good = "http://{host}:{port}/ibi/{label}"
	for _, text := range []string{"", ".", "br", ".br", "*", "*.inpe.br", "inpe.br:80", "http://inpe.br", "inpe.br/x", "-a.br", "10.0.0.0/99", "fe80::1%eth0", "a..b", strings.Repeat("a.", 200) + "b"} {
		if _, err := NewOrigins([]string{text}, good); err == nil {
			t.Errorf("%q is trusted", text)
		}
	}
	for _, text := range []string{"", "http://{label}/", "http://{host}{label}", "http://{host}", "http://{host}/", "ftp://{host}/{label}", "javascript://{host}/{label}", "http://{host}.example.org/{label}", "http://x@{host}/{label}",
		"http://{host}:{port}{label}", "http://{host}:80/{label}", "http://{host}/{label}/{label}", "http://{host}/{label}#x", "http://{host}/{name}/{label}", "http://{host}\\{label}", "http://{host}@evil.example/{label}"} {
		if _, err := NewOrigins([]string{"inpe.br"}, text); err == nil {
			t.Errorf("%q is a template", text)
		}
	}
	for _, text := range []string{good, "https://{host}/ibi/{label}", "https://{host}/?id={label}", "http://{host}:{port}/{label}"} {
		if _, err := NewOrigins([]string{"inpe.br"}, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if o, err := NewOrigins(nil, good); o != nil || err != nil {
		t.Errorf("nothing is listed: %v, %v", o, err)
	}
}
