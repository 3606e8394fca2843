package hdlclient

import (
	"bytes"
	"encoding/json"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/wire/hdl"
)

// MaxSiteFile is how many octets a file of sites may have.
const MaxSiteFile = 1 << 20

// ParseSites reads the sites in a file: siteinfo.bin or siteinfo.json of a server, or the root_info or resolver_service of the
// reference's clients.
func ParseSites(data []byte) ([]hdl.Site, error) {
	if len(data) > MaxSiteFile {
		return nil, refuse(stele.Invalid, "hdlclient.site-file-too-long", "the file has {octets} octets, and a file of sites has at most {most}", len(data), MaxSiteFile)
	}
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' {
		return parseSiteJSON(text)
	}
	one, err := hdl.ParseSite(data)
	if err == nil {
		return []hdl.Site{one}, nil
	}
	values, other := hdl.ParseRootInfo(data)
	if other != nil {
		return nil, refuse(stele.Invalid, "hdlclient.site-file-invalid", "this is neither a siteinfo.bin ({cause}) nor a root_info ({other})", err, other)
	}
	var list []hdl.Site
	for i := range values {
		if v := &values[i]; isOne(v, typeSite) {
			one, err := hdl.ParseSite(v.Data)
			if err != nil {
				return nil, refuse(stele.Invalid, "", "{cause}", err)
			}
			list = append(list, one)
		}
	}
	if len(list) == 0 {
		return nil, refuse(stele.Invalid, "hdlclient.site-file-empty", "the file names no site (HS_SITE)")
	}
	return list, nil
}

// parseSiteJSON reads a siteinfo.json: the value of an HS_SITE, as JSON has it.
func parseSiteJSON(text []byte) ([]hdl.Site, error) {
	if !json.Valid(text) {
		return nil, refuse(stele.Invalid, "hdlclient.site-not-json", "this is not a siteinfo.json: it is not JSON")
	}
	whole := append([]byte(`[{"index":1,"type":"`+typeSite+`","data":{"format":"site","value":`), text...)
	values, err := handlejson.DecodeValues(append(whole, `}}]`...))
	if err != nil || len(values) != 1 {
		return nil, refuse(stele.Invalid, "hdlclient.site-json-invalid", "this is not a siteinfo.json: {cause}", stele.Reason(err))
	}
	one, err := hdl.ParseSite(values[0].Data)
	if err != nil {
		return nil, refuse(stele.Invalid, "", "{cause}", err)
	}
	return []hdl.Site{one}, nil
}
