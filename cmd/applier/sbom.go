package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"runtime/debug"
	"strings"
)

// bom is a CycloneDX 1.6 bill of materials: which modules are in this binary. It is
// made of what the linker recorded, so it cannot differ from the binary.
type bom struct {
	Schema      string         `json:"$schema"`
	Format      string         `json:"bomFormat"`
	SpecVersion string         `json:"specVersion"`
	Version     int            `json:"version"`
	Metadata    bomMetadata    `json:"metadata"`
	Components  []bomComponent `json:"components"`
}

type bomMetadata struct {
	Component bomComponent `json:"component"`
}

type bomComponent struct {
	Type    string    `json:"type"`
	Ref     string    `json:"bom-ref"`
	Name    string    `json:"name"`
	Version string    `json:"version"`
	PURL    string    `json:"purl,omitempty"`
	Hashes  []bomHash `json:"hashes,omitempty"`
}

// bomHash is the checksum of go.sum, which is a SHA-256 over the module's files.
type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// writeSBOM writes the bill of materials of a build.
func writeSBOM(w io.Writer, version string, info *debug.BuildInfo) error {
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata:   bomMetadata{bomComponent{Type: "application", Ref: "applier", Name: "applier", Version: version}},
		Components: []bomComponent{standardLibrary(info.GoVersion)},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, componentOf(m))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(b)
}

func standardLibrary(goVersion string) bomComponent {
	version := strings.TrimPrefix(goVersion, "go")
	purl := "pkg:golang/std@" + version
	return bomComponent{Type: "library", Ref: purl, Name: "std", Version: version, PURL: purl}
}

func componentOf(m *debug.Module) bomComponent {
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	c := bomComponent{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = []bomHash{{"SHA-256", hex.EncodeToString(sum)}}
	}
	return c
}
