"""What response types have and request types have not. Written by ``tools/request_fields.py``; do not edit.

``drop``: fields that a request has no place for; ``null``: fields that are left out when they are null; ``fill``: fields
that a request must have and that may be null; ``rename``: the name of a field in a request; ``inside``: the same for
nested objects, by field and by their ``type``.
"""

from __future__ import annotations

from typing import Any

CHAT: dict[str, Any] = {
    "drop": ["annotations", "parsed"],
    "null": ["tool_calls"],
    "inside": {
        "audio": {"": {"drop": ["data", "expires_at", "transcript"]}},
        "tool_calls": {"function": {"inside": {"function": {"": {"drop": ["parsed_arguments"]}}}}},
    },
}

RESPONSES: dict[str, Any] = {
    "message": {"inside": {"content": {"output_text": {"drop": ["parsed"], "null": ["logprobs"]}}}},
    "function_call": {
        "drop": ["parsed_arguments"],
        "null": ["id", "async", "namespace", "status"],
        "rename": {"async_": "async"},
    },
    "file_search_call": {"inside": {"results": {"": {"null": ["file_id", "filename", "score", "text"]}}}},
    "function_call_output": {
        "drop": ["created_by"],
        "inside": {
            "output": {
                "input_text": {"inside": {"prompt_cache_breakpoint": {"": {"null": ["ttl"]}}}},
                "input_image": {"inside": {"prompt_cache_breakpoint": {"": {"null": ["ttl"]}}}},
                "input_file": {"null": ["detail"], "inside": {"prompt_cache_breakpoint": {"": {"null": ["ttl"]}}}},
            }
        },
    },
    "web_search_call": {"inside": {"action": {"search": {"null": ["queries", "query", "sources"]}}}},
    "computer_call": {
        "null": ["action", "actions"],
        "inside": {"action": {"double_click": {"fill": ["keys"]}}, "actions": {"double_click": {"fill": ["keys"]}}},
    },
    "computer_call_output": {
        "drop": ["created_by"],
        "inside": {"output": {"computer_screenshot": {"null": ["file_id", "image_url"]}}},
    },
    "reasoning": {"null": ["content", "status"]},
    "tool_search_call": {"drop": ["created_by"], "fill": ["arguments"]},
    "tool_search_output": {
        "drop": ["created_by"],
        "inside": {
            "tools": {
                "function": {
                    "null": ["async", "defer_loading"],
                    "fill": ["parameters", "strict"],
                    "rename": {"async_": "async"},
                },
                "file_search": {
                    "null": ["max_num_results", "ranking_options"],
                    "inside": {"ranking_options": {"": {"null": ["hybrid_search", "ranker", "score_threshold"]}}},
                },
                "web_search": {"null": ["external_web_access", "search_context_size"]},
                "web_search_2025_08_26": {"null": ["external_web_access", "search_context_size"]},
                "mcp": {
                    "null": [
                        "authorization",
                        "connector_id",
                        "defer_loading",
                        "server_description",
                        "server_url",
                        "tunnel_id",
                    ],
                    "inside": {
                        "allowed_tools": {"": {"null": ["read_only", "tool_names"]}},
                        "require_approval": {
                            "": {
                                "null": ["always", "never"],
                                "inside": {
                                    "always": {"": {"null": ["read_only", "tool_names"]}},
                                    "never": {"": {"null": ["read_only", "tool_names"]}},
                                },
                            }
                        },
                    },
                },
                "code_interpreter": {
                    "inside": {
                        "container": {
                            "auto": {
                                "null": ["file_ids", "network_policy"],
                                "inside": {"network_policy": {"allowlist": {"null": ["domain_secrets"]}}},
                            }
                        }
                    }
                },
                "image_generation": {
                    "null": [
                        "action",
                        "background",
                        "complexity",
                        "frame_count",
                        "frame_duration_ms",
                        "input_image_mask",
                        "model",
                        "moderation",
                        "output_compression",
                        "output_format",
                        "partial_images",
                        "quality",
                        "size",
                        "svg",
                    ],
                    "inside": {
                        "input_image_mask": {"": {"null": ["file_id", "image_url"]}},
                        "svg": {"": {"null": ["model"], "inside": {"reasoning": {"": {"null": ["effort"]}}}}},
                    },
                },
                "shell": {
                    "inside": {
                        "environment": {
                            "container_auto": {
                                "null": ["file_ids", "network_policy", "skills"],
                                "inside": {
                                    "network_policy": {"allowlist": {"null": ["domain_secrets"]}},
                                    "skills": {"skill_reference": {"null": ["version"]}},
                                },
                            },
                            "local": {"null": ["skills"]},
                        }
                    }
                },
                "custom": {"null": ["async", "defer_loading", "description", "format"], "rename": {"async_": "async"}},
                "namespace": {
                    "inside": {
                        "tools": {
                            "function": {"null": ["async", "defer_loading"], "rename": {"async_": "async"}},
                            "custom": {
                                "null": ["async", "defer_loading", "description", "format"],
                                "rename": {"async_": "async"},
                            },
                        }
                    }
                },
                "tool_search": {"null": ["execution"]},
                "web_search_preview": {"null": ["search_content_types", "search_context_size"]},
                "web_search_preview_2025_03_11": {"null": ["search_content_types", "search_context_size"]},
            }
        },
    },
    "additional_tools": {
        "inside": {
            "tools": {
                "function": {
                    "null": ["async", "defer_loading"],
                    "fill": ["parameters", "strict"],
                    "rename": {"async_": "async"},
                },
                "file_search": {
                    "null": ["max_num_results", "ranking_options"],
                    "inside": {"ranking_options": {"": {"null": ["hybrid_search", "ranker", "score_threshold"]}}},
                },
                "web_search": {"null": ["external_web_access", "search_context_size"]},
                "web_search_2025_08_26": {"null": ["external_web_access", "search_context_size"]},
                "mcp": {
                    "null": [
                        "authorization",
                        "connector_id",
                        "defer_loading",
                        "server_description",
                        "server_url",
                        "tunnel_id",
                    ],
                    "inside": {
                        "allowed_tools": {"": {"null": ["read_only", "tool_names"]}},
                        "require_approval": {
                            "": {
                                "null": ["always", "never"],
                                "inside": {
                                    "always": {"": {"null": ["read_only", "tool_names"]}},
                                    "never": {"": {"null": ["read_only", "tool_names"]}},
                                },
                            }
                        },
                    },
                },
                "code_interpreter": {
                    "inside": {
                        "container": {
                            "auto": {
                                "null": ["file_ids", "network_policy"],
                                "inside": {"network_policy": {"allowlist": {"null": ["domain_secrets"]}}},
                            }
                        }
                    }
                },
                "image_generation": {
                    "null": [
                        "action",
                        "background",
                        "complexity",
                        "frame_count",
                        "frame_duration_ms",
                        "input_image_mask",
                        "model",
                        "moderation",
                        "output_compression",
                        "output_format",
                        "partial_images",
                        "quality",
                        "size",
                        "svg",
                    ],
                    "inside": {
                        "input_image_mask": {"": {"null": ["file_id", "image_url"]}},
                        "svg": {"": {"null": ["model"], "inside": {"reasoning": {"": {"null": ["effort"]}}}}},
                    },
                },
                "shell": {
                    "inside": {
                        "environment": {
                            "container_auto": {
                                "null": ["file_ids", "network_policy", "skills"],
                                "inside": {
                                    "network_policy": {"allowlist": {"null": ["domain_secrets"]}},
                                    "skills": {"skill_reference": {"null": ["version"]}},
                                },
                            },
                            "local": {"null": ["skills"]},
                        }
                    }
                },
                "custom": {"null": ["async", "defer_loading", "description", "format"], "rename": {"async_": "async"}},
                "namespace": {
                    "inside": {
                        "tools": {
                            "function": {"null": ["async", "defer_loading"], "rename": {"async_": "async"}},
                            "custom": {
                                "null": ["async", "defer_loading", "description", "format"],
                                "rename": {"async_": "async"},
                            },
                        }
                    }
                },
                "tool_search": {"null": ["execution"]},
                "web_search_preview": {"null": ["search_content_types", "search_context_size"]},
                "web_search_preview_2025_03_11": {"null": ["search_content_types", "search_context_size"]},
            }
        }
    },
    "compaction": {"drop": ["created_by"]},
    "image_generation_call": {
        "null": ["error", "svg_usage"],
        "fill": ["result"],
        "inside": {"error": {"": {"null": ["moderation_details"], "fill": ["code", "param"]}}},
    },
    "code_interpreter_call": {"fill": ["code", "outputs"]},
    "shell_call": {"drop": ["created_by"]},
    "shell_call_output": {"drop": ["created_by"], "inside": {"output": {"": {"drop": ["created_by"]}}}},
    "apply_patch_call": {"drop": ["created_by"]},
    "apply_patch_call_output": {"drop": ["created_by"]},
    "mcp_call": {"null": ["status"], "inside": {"error": {"mcp_tool_execution_error": {"fill": ["content"]}}}},
    "mcp_list_tools": {"inside": {"tools": {"": {"fill": ["input_schema"]}}}},
    "custom_tool_call": {"null": ["id", "async", "namespace"], "rename": {"async_": "async"}},
    "custom_tool_call_output": {
        "drop": ["status", "created_by"],
        "inside": {
            "output": {
                "input_text": {
                    "null": ["prompt_cache_breakpoint"],
                    "inside": {"prompt_cache_breakpoint": {"": {"null": ["ttl"]}}},
                },
                "input_image": {
                    "null": ["prompt_cache_breakpoint"],
                    "inside": {"prompt_cache_breakpoint": {"": {"null": ["ttl"]}}},
                },
                "input_file": {
                    "null": ["detail", "file_data", "file_url", "filename", "prompt_cache_breakpoint"],
                    "inside": {"prompt_cache_breakpoint": {"": {"null": ["ttl"]}}},
                },
            }
        },
    },
}

ANTHROPIC: dict[str, Any] = {
    "text": {
        "drop": ["parsed_output"],
        "inside": {
            "citations": {
                "char_location": {"drop": ["file_id"], "fill": ["document_title"]},
                "page_location": {"drop": ["file_id"], "fill": ["document_title"]},
                "content_block_location": {"drop": ["file_id"], "fill": ["document_title"]},
                "web_search_result_location": {"fill": ["title"]},
                "search_result_location": {"fill": ["title"]},
            }
        },
    },
    "tool_use": {"null": ["caller"]},
    "server_tool_use": {"null": ["caller"]},
    "web_search_tool_result": {"null": ["caller"]},
    "web_fetch_tool_result": {"null": ["caller"]},
}

GEMINI: dict[str, Any] = {
    "null": [
        "mediaResolution",
        "codeExecutionResult",
        "executableCode",
        "fileData",
        "functionCall",
        "functionResponse",
        "inlineData",
        "text",
        "thought",
        "thoughtSignature",
        "videoMetadata",
        "toolCall",
        "toolResponse",
        "partMetadata",
        "audioTranscription",
        "mediaProcessing",
        "speechMetadata",
    ],
    "rename": {
        "media_resolution": "mediaResolution",
        "code_execution_result": "codeExecutionResult",
        "executable_code": "executableCode",
        "file_data": "fileData",
        "function_call": "functionCall",
        "function_response": "functionResponse",
        "inline_data": "inlineData",
        "thought_signature": "thoughtSignature",
        "video_metadata": "videoMetadata",
        "tool_call": "toolCall",
        "tool_response": "toolResponse",
        "part_metadata": "partMetadata",
        "audio_transcription": "audioTranscription",
        "media_processing": "mediaProcessing",
        "speech_metadata": "speechMetadata",
    },
    "inside": {
        "mediaResolution": {"": {"null": ["level", "numTokens"], "rename": {"num_tokens": "numTokens"}}},
        "codeExecutionResult": {"": {"null": ["outcome", "output", "id"]}},
        "executableCode": {"": {"null": ["code", "language", "id"]}},
        "fileData": {
            "": {
                "null": ["displayName", "fileUri", "mimeType"],
                "rename": {"display_name": "displayName", "file_uri": "fileUri", "mime_type": "mimeType"},
            }
        },
        "functionCall": {
            "": {
                "null": ["id", "args", "name", "partialArgs", "willContinue"],
                "rename": {"partial_args": "partialArgs", "will_continue": "willContinue"},
                "inside": {
                    "partialArgs": {
                        "": {
                            "null": [
                                "boolValue",
                                "jsonPath",
                                "nullValue",
                                "numberValue",
                                "stringValue",
                                "willContinue",
                            ],
                            "rename": {
                                "bool_value": "boolValue",
                                "json_path": "jsonPath",
                                "null_value": "nullValue",
                                "number_value": "numberValue",
                                "string_value": "stringValue",
                                "will_continue": "willContinue",
                            },
                        }
                    }
                },
            }
        },
        "functionResponse": {
            "": {
                "null": ["willContinue", "scheduling", "parts", "id", "name", "response"],
                "rename": {"will_continue": "willContinue"},
                "inside": {
                    "parts": {
                        "": {
                            "null": ["inlineData", "fileData", "mediaProcessing"],
                            "rename": {
                                "inline_data": "inlineData",
                                "file_data": "fileData",
                                "media_processing": "mediaProcessing",
                            },
                            "inside": {
                                "inlineData": {
                                    "": {
                                        "null": ["mimeType", "data", "displayName"],
                                        "rename": {"mime_type": "mimeType", "display_name": "displayName"},
                                    }
                                },
                                "fileData": {
                                    "": {
                                        "null": ["fileUri", "mimeType", "displayName"],
                                        "rename": {
                                            "file_uri": "fileUri",
                                            "mime_type": "mimeType",
                                            "display_name": "displayName",
                                        },
                                    }
                                },
                            },
                        }
                    }
                },
            }
        },
        "inlineData": {
            "": {
                "null": ["data", "displayName", "mimeType"],
                "rename": {"display_name": "displayName", "mime_type": "mimeType"},
            }
        },
        "videoMetadata": {
            "": {
                "null": ["endOffset", "fps", "startOffset"],
                "rename": {"end_offset": "endOffset", "start_offset": "startOffset"},
            }
        },
        "toolCall": {"": {"null": ["id", "toolType", "args"], "rename": {"tool_type": "toolType"}}},
        "toolResponse": {"": {"null": ["id", "toolType", "response"], "rename": {"tool_type": "toolType"}}},
        "audioTranscription": {
            "": {
                "null": ["text", "finished", "languageCode", "speakerLabel", "words", "startOffset", "endOffset"],
                "rename": {
                    "language_code": "languageCode",
                    "speaker_label": "speakerLabel",
                    "start_offset": "startOffset",
                    "end_offset": "endOffset",
                },
                "inside": {
                    "words": {
                        "": {
                            "null": ["word", "startOffset", "endOffset"],
                            "rename": {"start_offset": "startOffset", "end_offset": "endOffset"},
                        }
                    }
                },
            }
        },
        "speechMetadata": {"": {"null": ["speaker", "style"]}},
    },
}

AWAITED_CALLS = frozenset(
    [
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
        "program",
        "shell_call",
    ]
)

ECHOED = frozenset(
    [
        "access_programs",
        "background",
        "container",
        "conversation",
        "diagnostics",
        "image",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)
