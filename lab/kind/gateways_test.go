// The Gateway API's conformance suite for an implementation of layer 4. All options are the suite's own flags, but for
// its base manifests: of these the Gateways have listeners of HTTP and HTTPS only, which the suite waits for.
package programs

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/gateway-api/conformance"
)

func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	base, err := fs.ReadFile(conformance.Manifests, "base/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, document := range strings.Split(string(base), "\n---\n") {
		if !strings.Contains(document, "\nkind: Gateway\n") {
			kept = append(kept, document)
		}
	}
	// What two file systems have by one name is applied of both.
	options.BaseManifests = "base/layer-4.yaml"
	layer4 := fstest.MapFS{options.BaseManifests: {Data: []byte(strings.Join(kept, "\n---\n"))}}
	options.ManifestFS = []fs.FS{layer4, conformance.Manifests}
	conformance.RunConformanceWithOptions(t, options)
}
