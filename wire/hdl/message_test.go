package hdl_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// whole puts the fragments of the recordings together, by hand, and returns whole messages only.
func whole(t testing.TB) []recorded {
	all, _ := recordings(t)
	var list []recorded
	for _, m := range all {
		if len(m.octets) < hdl.EnvelopeSize || m.title == "message length below 24" && m.request {
			continue
		}
		total := int(binary.BigEndian.Uint32(m.octets[16:]))
		if n := len(list); n > 0 && binary.BigEndian.Uint32(m.octets[12:]) > 0 {
			list[n-1].octets = append(list[n-1].octets[:len(list[n-1].octets):len(list[n-1].octets)], m.octets[hdl.EnvelopeSize:]...)
			continue
		}
		if m.transport != "UDP" && total != len(m.octets)-hdl.EnvelopeSize {
			t.Fatalf("%s:%d is cut", m.file, m.line)
		}
		list = append(list, m)
	}
	return list
}

// recode decodes a body and encodes it again.
func recode(m *hdl.Message) ([]byte, error) {
	if m.Header.Response == 0 {
		body, err := hdl.ParseRequest(m)
		if err != nil {
			return nil, err
		}
		return body.Append(nil, m.Envelope.Version), nil
	}
	digest, body, err := hdl.ParseResponse(m)
	if err != nil {
		return nil, err
	}
	return body.Append(digest.Append(nil), m.Envelope.Version), nil
}

// recodeValues decodes the data of the values whose types the protocol defines, and encodes them again.
func recodeValues(t *testing.T, m *hdl.Message) {
	var body hdl.Body
	if m.Header.Response == 0 {
		body, _ = hdl.ParseRequest(m)
	} else {
		_, body, _ = hdl.ParseResponse(m)
	}
	var values []hdl.Value
	switch b := body.(type) {
	case *hdl.ValuesBody:
		values = b.Values
	case *hdl.ReferralBody:
		values = b.Values
	case hdl.SiteBody:
		values = []hdl.Value{{Type: []byte("HS_SITE"), Data: b.Site}}
	}
	for _, v := range values {
		var got []byte
		var err error
		switch string(v.Type) {
		case "HS_ADMIN":
			var a hdl.Admin
			a, err = hdl.ParseAdmin(v.Data)
			got = a.Append(nil)
		case "HS_VLIST":
			var refs []hdl.Reference
			refs, err = hdl.ParseReferences(v.Data)
			got = hdl.AppendReferences(nil, refs)
		case "HS_SITE", "HS_SITE.PREFIX":
			var s hdl.Site
			s, err = hdl.ParseSite(v.Data)
			got = s.Append(nil)
		default:
			continue
		}
		if err != nil || !bytes.Equal(got, v.Data) {
			t.Errorf("%s: %x, %v; want %x", v.Type, got, err, v.Data)
		}
	}
}

// TestRecordedMessages decodes every recorded message, encodes it again and compares the octets.
func TestRecordedMessages(t *testing.T) {
	seen := 0
	for _, rec := range whole(t) {
		m, err := hdl.Parse(rec.octets)
		if rec.title == "body length that is a lie" && rec.request {
			var e *hdl.Error
			if !errors.As(err, &e) || e.Response != hdl.ServerError {
				t.Errorf("%s:%d: %v", rec.file, rec.line, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s:%d (%s): %v", rec.file, rec.line, rec.title, err)
			continue
		}
		if got := m.Append(nil); !bytes.Equal(got, rec.octets) {
			t.Errorf("%s:%d (%s):\n%x\nwant\n%x", rec.file, rec.line, rec.title, got, rec.octets)
		}
		if m.Sealed != nil {
			continue
		}
		if (m.Header.Response == 0) != rec.request {
			t.Errorf("%s:%d: response code %d", rec.file, rec.line, m.Header.Response)
		}
		if got, err := recode(&m); err != nil || !bytes.Equal(got, m.Body) {
			t.Errorf("%s:%d (%s): body %x, %v\nwant %x", rec.file, rec.line, rec.title, got, err, m.Body)
		}
		recodeValues(t, &m)
		seen++
	}
	if seen < 250 {
		t.Errorf("only %d messages; the recordings were not read", seen)
	}
}

// TestUnparsable compares the answers to what is not a message with those of the reference.
func TestUnparsable(t *testing.T) {
	seen := 0
	for _, rec := range whole(t) {
		code, text := hdl.ResponseCode(0), ""
		switch {
		case rec.request:
		case rec.title == "message length below 24":
			code, text = hdl.ProtocolError, "Invalid message length"
		case rec.title == "body length that is a lie":
			code, text = hdl.ServerError, "Server error processing request, see server logs"
		}
		if code == 0 {
			continue
		}
		seen++
		want, _ := hdl.Parse(rec.octets)
		got := hdl.Unparsable(code, text, want.Header.Expiration)
		if !bytes.Equal(got.Append(nil), rec.octets) {
			t.Errorf("%s: %x, want %x", rec.title, got.Append(nil), rec.octets)
		}
	}
	if seen != 2 {
		t.Errorf("%d answers", seen)
	}
}

// TestResolve reads a request with filters, and writes an answer without a second buffer.
func TestResolve(t *testing.T) {
	rec := find(t, "resolution, types URL and HS_ADMIN, index 2")
	m, err := hdl.Parse(rec[0].octets)
	if err != nil {
		t.Fatal(err)
	}
	var q hdl.ResolveRequest
	if err := q.Decode(m.Body); err != nil {
		t.Fatal(err)
	}
	if string(q.Handle) != "20.500.99999/abc-1" || len(q.Indexes) != 1 || q.Indexes[0] != 2 || len(q.Types) != 2 || string(q.Types[1]) != "HS_ADMIN" {
		t.Errorf("%+v", q)
	}
	want, err := hdl.Parse(rec[1].octets)
	if err != nil {
		t.Fatal(err)
	}
	var answer hdl.ValuesBody
	if err := answer.Decode(want.Body); err != nil {
		t.Fatal(err)
	}
	b := []byte("before")
	b = hdl.BeginMessage(b, &want.Envelope, &want.Header)
	b = answer.Append(b, want.Envelope.Version)
	b = hdl.EndMessage(b, len("before"))
	if !bytes.Equal(b[len("before"):], rec[1].octets) {
		t.Errorf("%x, want %x", b, rec[1].octets)
	}
	if v := m.Envelope.AnswerVersion(); v != want.Envelope.Version {
		t.Errorf("answer in %v", v)
	}
}

// find returns the messages of an exchange.
func find(t testing.TB, title string) (list []recorded) {
	for _, rec := range whole(t) {
		if rec.title == title {
			list = append(list, rec)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no exchange %q", title)
	}
	return list
}

// TestBadMessages tells what a reader says of messages that are wrong, and with which response code.
func TestBadMessages(t *testing.T) {
	good := find(t, "resolution, types URL and HS_ADMIN, index 2")[0].octets
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	put := func(b []byte, at int, n uint32) []byte { binary.BigEndian.PutUint32(b[at:], n); return b }
	for name, c := range map[string]struct {
		octets   []byte
		response hdl.ResponseCode
		text     string
	}{
		"nothing":           {nil, hdl.ProtocolError, "0 octets"},
		"half an envelope":  {good[:19], hdl.ProtocolError, "19 octets"},
		"half":              {good[:60], hdl.ProtocolError, "says that it has 81 octets after its envelope, and has 40"},
		"more":              {append(bytes.Clone(good), 0), hdl.ProtocolError, "and has 82"},
		"too long":          {change(func(b []byte) []byte { return put(b, 16, hdl.MaxMessage+1) }), hdl.ProtocolError, "at most 262144"},
		"very long":         {change(func(b []byte) []byte { return put(b, 16, 0xffffffff) }), hdl.ProtocolError, "at most 262144"},
		"no header":         {put(bytes.Clone(good[:30]), 16, 10), hdl.ProtocolError, "header alone"},
		"body length":       {change(func(b []byte) []byte { return put(b, 40, 0xffffffff) }), hdl.ServerError, "4294967295"},
		"body length by 1":  {change(func(b []byte) []byte { return put(b, 40, 54) }), hdl.ServerError, "54"},
		"credential length": {change(func(b []byte) []byte { return put(b, len(b)-4, 1) }), hdl.ServerError, "credential says that it has 1 octets"},
		"compressed":        {change(func(b []byte) []byte { b[2] |= 0x80; return b }), hdl.ProtocolError, "compressed"},
		"handle length":     {change(func(b []byte) []byte { return put(b, 44, 2049) }), hdl.InvalidHandle, "at most 2048"},
		"handle past end":   {change(func(b []byte) []byte { return put(b, 44, 50) }), hdl.ProtocolError, "49 remain"},
		"many indexes":      {change(func(b []byte) []byte { return put(b, 66, 0xfffff) }), hdl.ProtocolError, "cannot hold"},
		"too many indexes":  {change(func(b []byte) []byte { return put(b, 66, 0xffffffff) }), hdl.ProtocolError, "at most"},
	} {
		m, err := hdl.Parse(c.octets)
		if err == nil {
			_, err = hdl.ParseRequest(&m)
		}
		var e *hdl.Error
		if !errors.As(err, &e) || e.Response != c.response || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadBodies: lists that are too long fail with the response code of what they list.
func TestBadBodies(t *testing.T) {
	values := hdl.AppendValues(hdl.AppendHandle(nil, "a/b"), make([]hdl.Value, hdl.MaxValues+1))
	for name, c := range map[string]struct {
		m    hdl.Message
		code hdl.ResponseCode
	}{
		"too many values": {hdl.Message{Header: hdl.Header{Operation: hdl.CreateHandle}, Body: values}, hdl.InvalidValue},
		"handle too long": {hdl.Message{Header: hdl.Header{Operation: hdl.DeleteHandle}, Body: hdl.AppendHandle(nil, strings.Repeat("a", 2049))}, hdl.InvalidHandle},
		"trailing":        {hdl.Message{Header: hdl.Header{Operation: hdl.DeleteHandle}, Body: append(hdl.AppendHandle(nil, "a/b"), 0)}, hdl.ProtocolError},
	} {
		_, err := hdl.ParseRequest(&c.m)
		var e *hdl.Error
		if !errors.As(err, &e) || e.Response != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := hdl.Message{Header: hdl.Header{Operation: hdl.CreateHandle}, Body: hdl.AppendValues(hdl.AppendHandle(nil, "a/b"), make([]hdl.Value, hdl.MaxValues))}
	if _, err := hdl.ParseRequest(&whole); err != nil {
		t.Errorf("%d values: %v", hdl.MaxValues, err)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct{ version, suggested, want hdl.Version }{
		{hdl.Version{2, 3}, hdl.Version{2, 11}, hdl.Version{2, 11}},
		{hdl.Version{2, 5}, hdl.Version{}, hdl.Version{2, 5}},
		{hdl.Version{2, 0}, hdl.Version{2, 0}, hdl.Version{2, 0}},
		{hdl.Version{2, 12}, hdl.Version{2, 12}, hdl.Version{2, 11}},
		{hdl.Version{3, 0}, hdl.Version{3, 0}, hdl.Version{2, 11}},
		{hdl.Version{3, 0}, hdl.Version{}, hdl.Version{2, 11}},
	} {
		e := hdl.Envelope{Version: c.version, Suggested: c.suggested}
		if got := e.AnswerVersion(); got != c.want {
			t.Errorf("%v suggests %v: %v", c.version, c.suggested, got)
		}
	}
	// 5 bits of suggested major version, as DO-IRP has it.
	e := hdl.Envelope{Version: hdl.Version{3, 0}, Suggested: hdl.Version{31, 7}, Truncated: true}
	if got, err := hdl.ParseEnvelope(e.Append(nil)); err != nil || got != e {
		t.Errorf("%+v, %v", got, err)
	}
	if hdl.InvalidValue.In(hdl.Version{2, 4}) != hdl.ValueExists || hdl.InvalidValue.In(hdl.Version{2, 5}) != hdl.InvalidValue ||
		hdl.ServerBackup.In(hdl.Version{2, 1}) != hdl.PrefixReferral {
		t.Error("response codes of old versions")
	}
}

func TestHasType(t *testing.T) {
	for _, c := range []struct {
		typ, wanted string
		want        bool
	}{
		{"URL", "url", true}, {"URL", "URL.", true}, {"URL.x", "url.", true}, {"URLX", "URL.", false}, {"URL", "UR", false},
		{"URL.x", "URL", false}, {"", "", true}, {"x", ".", false}, {".x", ".", true},
	} {
		if got := hdl.HasType([]byte(c.typ), []byte(c.wanted)); got != c.want {
			t.Errorf("%q for %q: %v", c.typ, c.wanted, got)
		}
	}
}

func TestCheckHandle(t *testing.T) {
	for text, code := range map[string]string{"a/b": "", "": "hdl.handle-empty", "a/\xff": "hdl.handle-not-utf8", strings.Repeat("a", 2049): "hdl.handle-too-long"} {
		err := hdl.CheckHandle([]byte(text))
		var e *hdl.Error
		if errors.As(err, &e); e == nil && code != "" || e != nil && (e.Code != code || e.Response != hdl.InvalidHandle) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
