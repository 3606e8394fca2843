package lsid

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzMessage: any bytes are a message, or a fault that says that they are not.
func FuzzMessage(f *testing.F) {
	const envelope = `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><a xmlns="b"><lsid>urn:lsid:a.b:c:d</lsid></a></e:Body></e:Envelope>`
	for _, kind := range []string{"text/xml", "text/xml; charset=utf-8", `multipart/related; boundary="b"; type="text/xml"`, "multipart/related", "x"} {
		for _, body := range []string{"", envelope, "<!DOCTYPE a>" + envelope, "--b\r\nContent-Type: text/xml\r\n\r\n" + envelope + "\r\n--b\r\n\r\nx\r\n--b--", "--b\r\nContent-Transfer-Encoding: base64\r\n\r\nPGE+\r\n--b--"} {
			f.Add(kind, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		m, err := readMessage(kind, bytes.NewReader(body))
		if err != nil {
			if e, ok := errors.AsType[*fault](err); !ok || e.code != badMessage || e.text == "" {
				t.Fatal(err)
			}
			return
		}
		if m.body == nil || m.operation.Local == "" {
			t.Fatalf("%+v", m)
		}
		for _, a := range m.argumentsOf() {
			if a.raw {
				t.Fatal(a)
			}
		}
		if _, err := m.record(); err != nil && codeOf(err) != badCall {
			t.Fatal(err)
		}
	})
}

// FuzzQuery: any query gives arguments, of which each is there once.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "lsid=urn:lsid:a.b:c:d", "lsid=%", "lsid=a&lsid=b", "start=1&length=2&lsid=x", "acceptedFormats=a/b%2Bc,d", "&&=;%zz=1"} {
		f.Add(q, []byte("0123456789"))
	}
	f.Fuzz(func(t *testing.T, query string, data []byte) {
		list, err := readQuery(query)
		if err != nil {
			if codeOf(err) != badCall {
				t.Fatal(err)
			}
			return
		}
		seen := map[string]bool{}
		for _, a := range list {
			if seen[a.name] || !strings.Contains(query, a.name+"=") && !strings.Contains(query, a.name) {
				t.Fatalf("%q gives %+v", query, list)
			}
			seen[a.name] = true
		}
		if texts, err := list.names(); err == nil && (len(texts) == 0 || len(texts) > 2) {
			t.Fatal(texts)
		}
		if part, err := list.within(data); err == nil {
			if !bytes.Contains(data, part) {
				t.Fatalf("%q of %q", part, data)
			}
		} else if c := codeOf(err); c != badRange && c != badCall {
			t.Fatal(err)
		}
		accepted, _ := list.get("acceptedFormats")
		if f, err := chooseFormat(accepted); err == nil && (f.Name == "" || f.asked == "" || strings.ContainsAny(f.served(), "\r\n")) {
			t.Fatalf("%q: %+v", accepted, f)
		}
	})
}
