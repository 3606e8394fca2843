package lsid

import (
	"bytes"
	"embed"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/plainxml"
)

// The namespaces of the bindings.
const (
	omg           = "http://www.omg.org/LSID/2003/"
	authorityHTTP = omg + "AuthorityServiceHTTPBindings"
	authoritySOAP = omg + "AuthorityServiceSOAPBindings"
	dataHTTP      = omg + "DataServiceHTTPBindings"
	dataSOAP      = omg + "DataServiceSOAPBindings"
)

const xmlType = "text/xml; charset=utf-8"

// files are the documents that those of the server import. Clients have them built in; generators of programs read them.
//
//go:embed wsdl/*.wsdl
var files embed.FS

// file answers with one of the documents that others import; false if the path is not that of one.
func (c *call) file(path string) bool {
	if strings.Contains(path, "/") {
		return false
	}
	text, err := files.ReadFile("wsdl/" + path)
	if err != nil {
		return false
	}
	c.w.Header()["Cache-Control"] = []string{"max-age=86400"}
	c.site.Send(http.StatusOK, xmlType, text)
	return true
}

// port is where a service answers.
type port struct {
	name, binding string
	soap          bool
	at            string
}

// document writes a WSDL document (section 2). The two prefixes are those of the bindings by HTTP and by SOAP.
func document(target, service string, http, soap [3]string, ports []port) []byte {
	var b bytes.Buffer
	attribute := func(name, value string) {
		b.WriteString(" " + name + `="`)
		plainxml.Write(&b, value)
		b.WriteByte('"')
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><wsdl:definitions`)
	attribute("targetNamespace", target)
	for _, n := range [][2]string{{"wsdl", "http://schemas.xmlsoap.org/wsdl/"}, {soap[0], soap[1]}, {http[0], http[1]},
		{"http", "http://schemas.xmlsoap.org/wsdl/http/"}, {"soap", "http://schemas.xmlsoap.org/wsdl/soap/"}} {
		attribute("xmlns:"+n[0], n[1])
	}
	b.WriteByte('>')
	for _, n := range [][3]string{http, soap} {
		b.WriteString("<wsdl:import")
		attribute("namespace", n[1])
		attribute("location", n[2])
		b.WriteString("/>")
	}
	b.WriteString("<wsdl:service")
	attribute("name", service)
	b.WriteByte('>')
	for _, p := range ports {
		prefix, kind := http[0], "http"
		if p.soap {
			prefix, kind = soap[0], "soap"
		}
		b.WriteString("<wsdl:port")
		attribute("name", p.name)
		attribute("binding", prefix+":"+p.binding)
		b.WriteString("><" + kind + ":address")
		attribute("location", p.at)
		b.WriteString("/></wsdl:port>")
	}
	b.WriteString("</wsdl:service></wsdl:definitions>")
	return b.Bytes()
}

// base returns the address of the server. The documents of this protocol can't do without one.
func (c *call) base() (string, error) {
	base := c.site.Base()
	if base == "" {
		return "", failf(configuration, "the server does not know its own address; its operator must set base")
	}
	return base, nil
}

// authority answers with the document of the authority. By HTTP the binding appends the path /authority/, by SOAP the
// address is that of the service (section 2). Both are offered: IBM's client sends notices by SOAP only.
func (c *call) authority() {
	base, err := c.base()
	if err != nil {
		c.fail(err)
		return
	}
	const keeps = time.Hour
	c.w.Header()["Cache-Control"] = []string{"max-age=" + strconv.Itoa(int(keeps.Seconds()))}
	c.w.Header().Set("Expires", c.o.Now().Add(keeps).UTC().Format(http.TimeFormat)) // clients of this protocol read nothing else (section 3)
	c.w.Header().Set("Vary", "Host")
	c.site.Send(http.StatusOK, xmlType, document(base+"/authority", "Authority",
		[3]string{"ahb", authorityHTTP, "LSIDAuthorityServiceHTTPBindings.wsdl"},
		[3]string{"asb", authoritySOAP, "LSIDAuthorityServiceSOAPBindings.wsdl"},
		[]port{{"HTTPPort", "LSIDAuthorityHTTPBinding", false, base}, {"SOAPPort", "LSIDAuthoritySOAPBinding", true, base + "/authority/"}}))
}

// services answers getAvailableServices: with the document of the services that know a name. The services of data are
// left out if there are none (section 2).
func (c *call) services() error {
	done, err := c.site.Charge(costServices)
	if err != nil {
		return err
	}
	defer done()
	f, err := c.find()
	if err != nil {
		return err
	}
	base, err := c.base()
	if err != nil {
		return err
	}
	hasData, err := c.hasData(f.res.Record)
	if err != nil {
		return err
	}
	var ports []port
	for _, p := range []port{
		{"HTTPData", "LSIDDataHTTPBinding", false, base + "/authority/data"}, {"HTTPMetadata", "LSIDMetadataHTTPBinding", false, base + "/authority/metadata"},
		{"SOAPData", "LSIDDataSOAPBinding", true, base + "/authority/data"}, {"SOAPMetadata", "LSIDMetadataSOAPBinding", true, base + "/authority/metadata"},
	} {
		if hasData || !strings.Contains(p.name, "Data") {
			ports = append(ports, p)
		}
	}
	text := document("http://"+authorityOf(f.id)+"/availableServices?"+f.id.String(), "Services",
		[3]string{"dhb", dataHTTP, "LSIDDataServiceHTTPBindings.wsdl"}, [3]string{"dsb", dataSOAP, "LSIDDataServiceSOAPBindings.wsdl"}, ports)
	c.keep(&f)
	if c.soap {
		c.sendAttachment(text)
		return nil
	}
	c.site.Send(http.StatusOK, xmlType, text)
	return nil
}

// authorityOf returns the authority of a name.
func authorityOf(id stele.ID) string {
	authority, _, _ := strings.Cut(strings.TrimPrefix(id.String(), mark), ":")
	return authority
}
