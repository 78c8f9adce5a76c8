import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: [".venv*/", "build/", "site/", "runs/"] },
  js.configs.recommended,
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["coordinator/page/static/*.js"],
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: globals.browser },
  },
  {
    // Put into pages as they are, without modules.
    files: ["edgefl/charts/static/*.js"],
    languageOptions: { ecmaVersion: 2024, sourceType: "script", globals: globals.browser },
  },
];
