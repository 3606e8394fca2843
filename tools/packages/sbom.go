package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbom writes the bill of materials of a program, in the form of CycloneDX: what the linker noted in it.
func (r *release) sbom(p platform) error {
	digest, err := digestOf(r.programs[p])
	if err != nil {
		return err
	}
	const path = "github.com/stele-id/stele"
	program := cdx.Component{
		BOMRef: "stele", Type: cdx.ComponentTypeApplication, Name: "stele", Version: "v" + r.version, Description: summary,
		PackageURL: purl(path, "v"+r.version), Licenses: licensesOf([]string{"Apache-2.0"}),
		Hashes:             &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest}},
		ExternalReferences: &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS, URL: homepage}},
		Properties: &[]cdx.Property{
			{Name: "stele:file", Value: filepath.Base(r.programs[p])},
			{Name: "stele:platform", Value: p.String()},
			{Name: "stele:commit", Value: r.commit},
		},
	}
	var components []cdx.Component
	var needs []string
	for _, m := range r.modules[p] {
		c := cdx.Component{
			BOMRef: purl(m.path, m.version), Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version,
			PackageURL: purl(m.path, m.version), Licenses: licensesOf(m.licenses), Scope: cdx.ScopeRequired,
		}
		if m.sum != "" { // not a digest of a file, but Go's of a module
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.sum}}
		}
		components = append(components, c)
		needs = append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	// The same program has the same number.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(homepage+"#"+digest)).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &program}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &needs}}
	return r.create(fmt.Sprintf("stele-%s-%s-%s.cdx.json", r.version, p.os, p.arch), func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

// purl is a package URL of a module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

func licensesOf(ids []string) *cdx.Licenses {
	var list cdx.Licenses
	for _, id := range ids {
		list = append(list, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &list
}
