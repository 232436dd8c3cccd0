package templates_test

import (
	"fmt"
	"log"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/templates"
	"github.com/followpress/followpress/site"
)

func ExampleOpenAPI() {
	config, err := site.Config{}.WithDefaults() // of the root of a site, usually
	if err != nil {
		log.Fatal(err)
	}
	body, err := templates.OpenAPI(config)
	if err != nil {
		log.Fatal(err)
	}
	var description struct {
		OpenAPI string
		Paths   map[string]any
	}
	if err := json.Unmarshal(body, &description); err != nil {
		log.Fatal(err)
	}
	_, ok := description.Paths["/api/v1/lists/{token_id}/details"]
	fmt.Println(description.OpenAPI, ok)
	// Output: 3.1.0 true
}
