package lsid

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"

	"github.com/stele-id/stele/internal/plainxml"
)

// Limits of a message. What clients send is much smaller.
const (
	maxMessage  = 1 << 20 // bytes of a request with its attachments
	maxEnvelope = 64 << 10
	maxParts    = 16
	maxTree     = 500 // elements of an envelope
)

const soapNamespace = "http://schemas.xmlsoap.org/soap/envelope/"

// message is the operation that a SOAP request calls.
type message struct {
	operation xml.Name
	body      *plainxml.Element
}

// readMessage reads a SOAP 1.1 request. If it has several parts the first is the message (section 4): SOAP::Lite sends
// back the attachments that it got.
func readMessage(contentType string, body io.Reader) (m message, err error) {
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return m, failf(badMessage, "the Content-Type can't be read; send text/xml")
	}
	switch {
	case kind == "multipart/related":
		return readParts(parameters["boundary"], body)
	case isXML(kind):
		return readEnvelope(body)
	}
	return m, failf(badMessage, "the Content-Type is %q; send text/xml, or multipart/related whose first part is text/xml", brief(kind))
}

func isXML(kind string) bool {
	return kind == "text/xml" || kind == "application/xml" || kind == "application/soap+xml"
}

// readParts reads the first part of a message, and looks at how many others there are.
func readParts(boundary string, body io.Reader) (m message, err error) {
	if boundary == "" || len(boundary) > 200 { // RFC 2046 has at most 70; SOAP::Lite's have 40
		return m, failf(badMessage, "the boundary of the parts is missing, or is too long")
	}
	parts := multipart.NewReader(body, boundary)
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		switch {
		case err == io.EOF && n > 0:
			return m, nil
		case err != nil:
			return m, unreadable(err)
		case n == maxParts:
			return m, failf(badMessage, "the message has more than %d parts", maxParts)
		case n > 0:
			continue
		}
		if kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type")); err == nil && !isXML(kind) {
			return m, failf(badMessage, "the first part of the message is %q, and must be text/xml", brief(kind))
		}
		var envelope io.Reader = part
		if strings.EqualFold(part.Header.Get("Content-Transfer-Encoding"), "base64") {
			envelope = base64.NewDecoder(base64.StdEncoding, part)
		}
		if m, err = readEnvelope(envelope); err != nil {
			return m, err
		}
	}
}

// readEnvelope reads the envelope of a message.
func readEnvelope(r io.Reader) (m message, err error) {
	root, err := plainxml.Parse(r, plainxml.Limits{Bytes: maxEnvelope, Token: maxEnvelope, Depth: 16, Elements: maxTree})
	if err != nil {
		return m, unreadable(err)
	}
	body := root.Child("Body")
	switch {
	case root.Name.Local != "Envelope" || body == nil:
		return m, failf(badMessage, "the message is not a SOAP envelope with a body")
	case root.Name.Space != soapNamespace:
		return m, failf(badMessage, "the message is not SOAP 1.1; send an envelope of %s", soapNamespace)
	case len(body.Children) != 1:
		return m, failf(badMessage, "the body of the message has %d elements, and must have one: the operation", len(body.Children))
	}
	m.body = body.Children[0]
	m.operation = m.body.Name
	return m, nil
}

// unreadable returns the fault for a message that can't be read.
func unreadable(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failf(badMessage, "the message has more than %d bytes", maxMessage)
	}
	return failf(badMessage, "the message can't be read: %s", reason(err))
}

// argumentsOf returns the arguments of an operation: the children without children, whatever their namespace.
func (m *message) argumentsOf() (list arguments) {
	for _, e := range m.body.Children {
		if len(e.Children) == 0 {
			list = append(list, argument{name: e.Name.Local, value: e.Text})
		}
	}
	return list
}

// answerSOAP answers a SOAP request at a path.
func (c *call) answerSOAP(path string) {
	switch path {
	case "", "metadata", "data", "assigning":
	default:
		c.fail(failf(noMethod, "there is no service here; send messages to /authority/"))
		return
	}
	if c.r.ContentLength > maxMessage {
		c.w.Header()["Connection"] = []string{"close"}
		c.fail(failf(badMessage, "the message has more than %d bytes", maxMessage))
		return
	}
	m, err := readMessage(c.r.Header.Get("Content-Type"), http.MaxBytesReader(c.w, c.r.Body, maxMessage))
	if err != nil {
		c.fail(err)
		return
	}
	c.operation, c.space = m.operation.Local, m.operation.Space
	if path == "assigning" {
		c.assign(&m)
		return
	}
	c.arguments = m.argumentsOf()
	c.do(m.operation.Local)
}

// result is an element of an answer, without a namespace.
type result struct{ name, text string }

// envelope writes an answer's message.
func (c *call) envelope(inside func(b *bytes.Buffer)) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="` + soapNamespace + `"><soapenv:Body>`)
	inside(&b)
	b.WriteString("</soapenv:Body></soapenv:Envelope>")
	return b.Bytes()
}

// response writes the element of an answer, which has the namespace of the request.
func (c *call) response(inside func(b *bytes.Buffer)) []byte {
	return c.envelope(func(b *bytes.Buffer) {
		name := c.operation + "Response" // of an operation that is known
		b.WriteString("<r:" + name + ` xmlns:r="`)
		plainxml.Write(b, c.space)
		b.WriteString(`">`)
		inside(b)
		b.WriteString("</r:" + name + ">")
	})
}

// element writes an element with a text.
func element(b *bytes.Buffer, name, text string) {
	b.WriteString("<" + name + ">")
	plainxml.Write(b, text)
	b.WriteString("</" + name + ">")
}

// sendResult answers without an attachment.
func (c *call) sendResult(inside func(b *bytes.Buffer)) {
	c.site.Send(http.StatusOK, "text/xml; charset=utf-8", c.response(inside))
}

// sendFault answers with a fault (section 4).
func (c *call) sendFault(code code, text string) {
	who := "soapenv:Client"
	if code >= internal && code < unauthenticated {
		who = "soapenv:Server"
	}
	c.site.Send(http.StatusInternalServerError, "text/xml; charset=utf-8", c.envelope(func(b *bytes.Buffer) {
		b.WriteString("<soapenv:Fault>")
		element(b, "faultcode", who)
		element(b, "faultstring", text)
		b.WriteString("<detail>")
		element(b, "errorcode", strconv.Itoa(int(code)))
		element(b, "description", text)
		b.WriteString("</detail></soapenv:Fault>")
	}))
}

// sendAttachment answers with an attachment (section 4). Its type is never text/xml, which SOAP::Lite would parse.
func (c *call) sendAttachment(content []byte, results ...result) bool {
	message := c.response(func(b *bytes.Buffer) {
		for _, r := range results {
			element(b, r.name, r.text)
		}
	})
	boundary := boundaryFor(content, message)
	var b bytes.Buffer
	b.Grow(len(content) + len(message) + 512)
	b.WriteString("--" + boundary + "\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Transfer-Encoding: binary\r\nContent-Id: <soap@stele>\r\n\r\n")
	b.Write(message)
	b.WriteString("\r\n--" + boundary + "\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\nContent-Id: <data@stele>\r\n\r\n")
	b.Write(content)
	b.WriteString("\r\n--" + boundary + "--\r\n")
	return c.site.Send(http.StatusOK, `multipart/related; type="text/xml"; start="<soap@stele>"; boundary="`+boundary+`"`, b.Bytes())
}

// boundaryFor returns a boundary that is in none of the parts.
func boundaryFor(parts ...[]byte) string {
	sum := sha256.New()
	for _, p := range parts {
		sum.Write(p)
	}
	for {
		text := "=_stele_" + hex.EncodeToString(sum.Sum(nil)[:12])
		free := true
		for _, p := range parts {
			free = free && !bytes.Contains(p, []byte(text))
		}
		if free {
			return text
		}
		sum.Write([]byte{1})
	}
}
